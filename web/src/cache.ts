// The models that this browser keeps, seen from the page.
import { QSFError } from './errors.js';
import { parseJournal } from './sources/journal.js';
import { JOURNAL_FILE, cacheName, cacheRoot, lock, readWhole } from './sources/opfs.js';
import type { CacheEntry } from './types.js';

/** How long a model that was just closed may take to let go of its files, in milliseconds. */
const PATIENCE = 1000;

export const cache = {
  /** Every model with bytes in the cache. */
  async list(): Promise<CacheEntry[]> {
    const root = await cacheRoot(false);
    if (!root) return [];
    const entries: CacheEntry[] = [];
    for await (const handle of root.values()) {
      const entry = handle.kind === 'directory' ? await readEntry(handle) : undefined;
      if (entry) entries.push(entry);
    }
    return entries.sort((a, b) => (a.url < b.url ? -1 : 1));
  },

  /** What is kept of the model at an address. */
  async state(url: string | URL): Promise<CacheEntry> {
    const address = absolute(url);
    const root = await cacheRoot(false);
    const folder = await root?.getDirectoryHandle(await cacheName(address)).catch(() => undefined);
    return (folder && (await readEntry(folder))) ?? { url: address, bytes: 0, total: 0, complete: false };
  },

  /** Removes what is kept of the model at an address. bad_state while it is open here or in another tab. */
  async remove(url: string | URL): Promise<void> {
    const root = await cacheRoot(false);
    if (root) await removeFolder(root, await cacheName(absolute(url)), absolute(url));
  },

  /** Removes every model that is not open; gives the addresses of those that are. */
  async clear(): Promise<string[]> {
    const root = await cacheRoot(false);
    if (!root) return [];
    const busy: string[] = [];
    const names: [string, string][] = [];
    for await (const handle of root.values()) {
      const entry = handle.kind === 'directory' ? await readEntry(handle) : undefined;
      names.push([handle.name, entry?.url ?? handle.name]);
    }
    for (const [name, url] of names) await removeFolder(root, name, url).catch(() => busy.push(url));
    return busy;
  },
};

function absolute(url: string | URL): string {
  const address = new URL(url, globalThis.document?.baseURI ?? globalThis.location.href);
  address.hash = '';
  return address.href;
}

async function readEntry(folder: FileSystemDirectoryHandle): Promise<CacheEntry | undefined> {
  const journal = parseJournal(await readWhole(folder, JOURNAL_FILE));
  if (!journal) return undefined;
  const { identity, verified, complete } = journal;
  return { url: identity.url, bytes: complete ? identity.size : verified.total, total: identity.size, complete };
}

async function removeFolder(root: FileSystemDirectoryHandle, name: string, url: string): Promise<void> {
  const release = await lock(name, PATIENCE);
  if (!release) throw new QSFError('bad_state', `${url} is open here or in another tab: close it before removing it.`);
  try {
    await root.removeEntry(name, { recursive: true });
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'NotFoundError')) {
      throw new QSFError('io_error', `The browser did not remove ${url} from its cache: ${String(error)}`, {
        cause: error,
      });
    }
  } finally {
    release();
  }
}
