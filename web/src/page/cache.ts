// The models that this browser keeps, from the page's side.
import { QSFError } from '../errors.js';
import { ofHub } from './hub.js';
import { checkKnown, checkOption, shown } from './options.js';
import { absolute } from '../platform.js';
import { hideSecrets } from '../secrets.js';
import { parseJournal } from '../sources/journal.js';
import { JOURNAL_FILE, cacheName, cacheRoot, lock, readWhole } from '../sources/opfs.js';
import type { QuantType } from '../boundary.gen.js';
import type { CacheEntry, CacheUsage, PruneOptions } from '../cache-types.js';

/** Milliseconds that a model which was just closed may take to release its files. */
const PATIENCE = 1000;

/** Returns every model with bytes in the cache, by address. */
export async function keptModels(): Promise<CacheEntry[]> {
  const root = await cacheRoot(false);
  if (!root) return [];
  return (await models(root)).map(({ entry }) => entry).sort((a, b) => (a.url < b.url ? -1 : 1));
}

export const cache = {
  /** Returns every model with bytes in the cache. */
  async list(): Promise<CacheEntry[]> {
    return keptModels();
  },

  /** Returns the total size of all models and the browser's limit. */
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
   * at most `maxBytes`. Returns the addresses of the removed models. Open models stay.
   */
  async prune(options: PruneOptions): Promise<string[]> {
    checkKnown('prune()', options, LIMITS);
    const maxBytes = checkOption('maxBytes', LIMITS.maxBytes, options.maxBytes);
    const maxAge = checkOption('maxAge', LIMITS.maxAge, options.maxAge);
    const root = await cacheRoot(false);
    return root ? removeOldest(root, await models(root), maxBytes, Date.now() - maxAge) : [];
  },

  /**
   * Returns the state of the model at an address. The address may be one from list(), or name a repository of the Hub. Of
   * several models, or of one with several types, the one that was opened last counts.
   */
  async state(url: string | URL): Promise<CacheEntry> {
    const address = addressOf(url);
    const root = await cacheRoot(false);
    const [folder] = root ? await foldersOf(root, address) : [];
    return folder?.entry ?? { url: hideSecrets(address), bytes: 0, total: 0, complete: false };
  },

  /**
   * Removes the cached bytes of the model at an address, which may be one from list(), with every type, or of all models of
   * a repository of the Hub. Rejects with bad_state while one is open here or in another tab, and with io_error if the browser does not
   * remove it.
   */
  async remove(url: string | URL): Promise<void> {
    const address = addressOf(url);
    const root = await cacheRoot(false);
    if (root) for (const { name } of await foldersOf(root, address)) await removeFolder(root, name, address);
  },

  /** Removes every model that is not open. Returns the addresses of the others. */
  async clear(): Promise<string[]> {
    const root = await cacheRoot(false);
    if (!root) return [];
    const busy: string[] = [];
    for (const { name, entry } of await folders(root)) {
      const url = entry?.url ?? name;
      await removeFolder(root, name, url).catch(() => busy.push(url));
    }
    return busy;
  },
};

function addressOf(url: string | URL): string {
  if (typeof url === 'string' || url instanceof URL) return absolute(ofHub(url));
  throw new QSFError('bad_argument', `the address is ${shown(url)}; it must be a string or a URL`);
}

/** Bytes and milliseconds. The defaults exceed every possible value. */
const LIMITS = {
  maxBytes: { type: 'real', fallback: Number.MAX_SAFE_INTEGER, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxAge: { type: 'real', fallback: Number.MAX_SAFE_INTEGER, least: 0, most: Number.MAX_SAFE_INTEGER },
} as const;

/** Removes the models that were opened longest ago until those other than `except`, of that type, take at most `bytes`. */
export async function makeRoom(bytes: number, except: string, quantType?: string): Promise<void> {
  const root = await cacheRoot(false);
  if (!root) return;
  const own = await cacheName(except, quantType);
  const others = (await models(root)).filter(({ name }) => name !== own);
  await removeOldest(root, others, bytes, -Infinity);
}

async function removeOldest(
  root: FileSystemDirectoryHandle,
  kept: Model[],
  most: number,
  since: number,
): Promise<string[]> {
  let left = kept.reduce((sum, { entry }) => sum + entry.bytes, 0);
  const removed: string[] = [];
  for (const { name, entry } of kept.sort((a, b) => (a.entry.used ?? 0) - (b.entry.used ?? 0))) {
    const { url, bytes, used = 0 } = entry;
    if (left <= most && used >= since) break;
    const gone = await removeFolder(root, name, url, 0).then(
      () => true,
      () => false,
    );
    if (!gone) continue;
    left -= bytes;
    removed.push(url);
  }
  return removed;
}

/** A folder of the cache. */
interface Folder {
  name: string;
  /** Undefined if it contains no model. */
  entry: CacheEntry | undefined;
}
interface Model extends Folder {
  entry: CacheEntry;
}

async function folders(root: FileSystemDirectoryHandle): Promise<Folder[]> {
  const all: Folder[] = [];
  for await (const handle of root.values()) {
    all.push({ name: handle.name, entry: handle.kind === 'directory' ? await readEntry(handle) : undefined });
  }
  return all;
}

/** Returns the folders with bytes of a model. */
async function models(root: FileSystemDirectoryHandle): Promise<Model[]> {
  return (await folders(root)).filter(
    (folder): folder is Model => folder.entry !== undefined && folder.entry.bytes > 0,
  );
}

/**
 * Returns an address's folders: those of the exact address, one for each type, or those whose entry shows the
 * address, or an address in it if it is a repository's. The folder that was used last is the first.
 */
async function foldersOf(root: FileSystemDirectoryHandle, address: string): Promise<Folder[]> {
  const all = await folders(root);
  const own = await Promise.all(all.map(({ entry }) => cacheName(address, entry?.quantType)));
  const exact = all.filter(({ name }, i) => name === own[i]);
  const isRepository = /\/resolve\/[^/]+\/$/.test(address);
  const isOf = (url: string) => (isRepository ? url.startsWith(address) : url === address);
  const found = exact.length > 0 ? exact : all.filter(({ entry }) => entry && isOf(entry.url));
  return found.sort((a, b) => (b.entry?.used ?? 0) - (a.entry?.used ?? 0));
}

const isGone = (error: unknown) => error instanceof DOMException && error.name === 'NotFoundError';

/** Resolves with undefined if the folder has no model, or was removed in between. */
async function readEntry(folder: FileSystemDirectoryHandle): Promise<CacheEntry | undefined> {
  const file = await readWhole(folder, JOURNAL_FILE);
  const journal = parseJournal(file.bytes);
  if (!journal) return undefined;
  const { identity, verified, complete } = journal;
  const { url, size: total, quantType } = identity;
  const type = quantType !== undefined && { quantType: quantType as QuantType };
  return { url, ...type, bytes: complete ? total : verified.total, total, complete, used: file.changed };
}

async function removeFolder(
  root: FileSystemDirectoryHandle,
  name: string,
  url: string,
  patience = PATIENCE,
): Promise<void> {
  const release = await lock(name, patience);
  if (!release) throw new QSFError('bad_state', `${url} is open here or in another tab: close it before removing it`);
  try {
    await root.removeEntry(name, { recursive: true });
  } catch (error) {
    if (!isGone(error)) {
      throw new QSFError('io_error', `the browser did not remove ${url} from its cache: ${String(error)}`, {
        cause: error,
      });
    }
  } finally {
    release();
  }
}
