// Where cached models lie in the origin's private file system: /qsf/<name>/ holds `model`, a file with the model's own
// offsets, sparse while it is filled, and `journal` (journal.ts). Whoever holds the lock of a name may write there.

const ROOT = 'qsf';
export const MODEL_FILE = 'model';
export const JOURNAL_FILE = 'journal';

/** FileSystemSyncAccessHandle, which only workers have, with the bytes that every browser lets it touch. */
interface SyncAccessHandle {
  /** Undefined where a file has one handle at most. */
  readonly mode?: string;
  read(into: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

/** Lets a file have several handles; whoever has the lock of a name has all of them. */
const mode = 'readwrite-unsafe';

type WorkerFileHandle = FileSystemFileHandle & {
  createSyncAccessHandle(options: { mode: string }): Promise<SyncAccessHandle>;
};

/** A handle beside others, where the browser can do that, else the only one. */
export const openHandle = (file: FileSystemFileHandle): Promise<SyncAccessHandle> =>
  (file as WorkerFileHandle).createSyncAccessHandle({ mode });

const isPrivate = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> => bytes.buffer instanceof ArrayBuffer;

/**
 * A file that is read and written without waiting. Bytes of shared memory go through a block of their own, read ones only
 * where the browser does not take such memory.
 */
export class SyncFile {
  readonly #handle: SyncAccessHandle;
  #block = new Uint8Array();
  #readsShared = true;

  constructor(handle: SyncAccessHandle) {
    this.#handle = handle;
  }

  /** Whether another worker can open it meanwhile. */
  get isShared(): boolean {
    return this.#handle.mode === mode;
  }

  read(into: Uint8Array, at: number): number {
    if (isPrivate(into)) return this.#handle.read(into, { at });
    if (this.#readsShared) {
      try {
        return this.#handle.read(into as Uint8Array<ArrayBuffer>, { at });
      } catch {
        this.#readsShared = false;
      }
    }
    const block = this.#room(into.length);
    const got = this.#handle.read(block, { at });
    into.set(block.subarray(0, got));
    return got;
  }

  write(bytes: Uint8Array, at: number): number {
    if (isPrivate(bytes)) return this.#handle.write(bytes, { at });
    const block = this.#room(bytes.length);
    block.set(bytes);
    return this.#handle.write(block, { at });
  }

  truncate(size: number): void {
    this.#handle.truncate(size);
  }

  get size(): number {
    return this.#handle.getSize();
  }

  flush(): void {
    this.#handle.flush();
  }

  close(): void {
    this.#handle.close();
  }

  #room(size: number): Uint8Array<ArrayBuffer> {
    if (this.#block.length < size) this.#block = new Uint8Array(size);
    return this.#block.subarray(0, size);
  }
}

/** Whether this worker can read and write cached files without waiting. */
export function hasSyncAccess(): boolean {
  return typeof FileSystemFileHandle === 'function' && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
}

/** Opens a file of this tab's. A page that is just being left may hold it for up to `patience` milliseconds. */
export async function syncAccess(file: FileSystemFileHandle, patience: number): Promise<SyncFile> {
  const end = performance.now() + patience;
  for (;;) {
    try {
      return new SyncFile(await openHandle(file));
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** The folder of all models; undefined where the browser has none to give. */
export async function cacheRoot(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    const top = await navigator.storage.getDirectory();
    return await top.getDirectoryHandle(ROOT, { create });
  } catch {
    return undefined;
  }
}

/** The folder name for an address: a digest, since addresses are longer than names may be. */
export async function cacheName(url: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
  return Array.from(new Uint8Array(digest, 0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Takes a name's lock and gives how to release it; undefined when it is held elsewhere for longer than `patience`
 * milliseconds, which a page that is just being left does not.
 */
export function lock(name: string, patience: number): Promise<(() => void) | undefined> {
  const waiting = patience > 0 ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
  return new Promise((resolve) => {
    navigator.locks
      .request(`qsf:${name}`, waiting, (held) => (held ? new Promise<void>(resolve) : resolve(undefined)))
      .catch(() => resolve(undefined));
  });
}

/** A small file's bytes, and when it was changed, in milliseconds since 1970; empty when it is not there. */
export async function readWhole(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<{ bytes: Uint8Array; changed: number }> {
  try {
    const file = await (await folder.getFileHandle(name)).getFile();
    return { bytes: new Uint8Array(await file.arrayBuffer()), changed: file.lastModified };
  } catch {
    return { bytes: new Uint8Array(), changed: 0 };
  }
}
