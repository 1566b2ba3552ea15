// The models that this browser keeps, seen from the page.
import { QSFError } from './errors.js';
import { checkKnown, checkOption } from './options.js';
import { absolute } from './platform.js';
import { parseJournal } from './sources/journal.js';
import { JOURNAL_FILE, cacheName, cacheRoot, lock, readWhole } from './sources/opfs.js';
import type { CacheEntry, CacheUsage, PruneOptions } from './types.js';

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
      if (entry && entry.bytes > 0) entries.push(entry);
    }
    return entries.sort((a, b) => (a.url < b.url ? -1 : 1));
  },

  /** What all models take together, and what the browser gives. */
  async usage(): Promise<CacheUsage> {
    const entries = await cache.list();
    const storage: Partial<StorageManager> = globalThis.navigator?.storage ?? {};
    const { quota } = (await storage.estimate?.().catch(() => undefined)) ?? {};
    return {
      models: entries.length,
      bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
      persisted: (await storage.persisted?.().catch(() => false)) ?? false,
      ...(quota !== undefined && { quota }),
    };
  },

  /**
   * Removes models that were not opened for `maxAge` milliseconds, then those opened longest ago until the others take
   * at most `maxBytes`; gives the addresses of what it removed. Those that are open stay.
   */
  async prune(options: PruneOptions): Promise<string[]> {
    checkKnown('prune()', options, LIMITS);
    const maxBytes = checkOption('maxBytes', LIMITS.maxBytes, options.maxBytes);
    const maxAge = checkOption('maxAge', LIMITS.maxAge, options.maxAge);
    return removeOldest(await cache.list(), maxBytes, Date.now() - maxAge);
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

/** Bytes and milliseconds; more than there can be where nothing is said. */
const LIMITS = {
  maxBytes: { type: 'real', fallback: Number.MAX_SAFE_INTEGER, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxAge: { type: 'real', fallback: Number.MAX_SAFE_INTEGER, least: 0, most: Number.MAX_SAFE_INTEGER },
} as const;

/** Removes what was opened longest ago until the models but `except` take at most `bytes`. */
export async function makeRoom(bytes: number, except: string): Promise<void> {
  const others = (await cache.list()).filter(({ url }) => url !== except);
  await removeOldest(others, bytes, -Infinity);
}

async function removeOldest(entries: CacheEntry[], most: number, since: number): Promise<string[]> {
  const root = await cacheRoot(false);
  if (!root) return [];
  let left = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const removed: string[] = [];
  for (const { url, bytes, used = 0 } of entries.sort((a, b) => (a.used ?? 0) - (b.used ?? 0))) {
    if (left <= most && used >= since) break;
    const gone = await removeFolder(root, await cacheName(url), url, 0).then(
      () => true,
      () => false,
    );
    if (!gone) continue;
    left -= bytes;
    removed.push(url);
  }
  return removed;
}

async function readEntry(folder: FileSystemDirectoryHandle): Promise<CacheEntry | undefined> {
  const file = await readWhole(folder, JOURNAL_FILE);
  const journal = parseJournal(file.bytes);
  if (!journal) return undefined;
  const { identity, verified, complete } = journal;
  const bytes = complete ? identity.size : verified.total;
  return { url: identity.url, bytes, total: identity.size, complete, used: file.changed };
}

async function removeFolder(
  root: FileSystemDirectoryHandle,
  name: string,
  url: string,
  patience = PATIENCE,
): Promise<void> {
  const release = await lock(name, patience);
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
