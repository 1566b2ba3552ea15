// The storage of cached models in the origin's private file system. /qsf/<name>/ contains `model`, a file with the
// model's own offsets, sparse while it is filled, and `journal` (journal.ts). The holder of a name's lock may write
// there.
import { MiB } from '../constants.js';
import { digestOf } from '../digest.js';

const ROOT = 'qsf';
/** The folder of copies of files, each as a cached model is, which last as long as their source. */
export const COPIES = 'qsf-copies';
export const MODEL_FILE = 'model';
export const JOURNAL_FILE = 'journal';
/** Bytes of a block through which shared memory is copied. */
const BLOCK = MiB;

/** FileSystemSyncAccessHandle, which only workers have, limited to the memory that every browser accepts. */
interface SyncAccessHandle {
  /** Undefined if the browser gives a file one handle at most. */
  readonly mode?: string;
  read(into: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

/** Allows several handles for a file. The holder of a name's lock has all of them. */
const mode = 'readwrite-unsafe';

type WorkerFileHandle = FileSystemFileHandle & {
  createSyncAccessHandle(options: { mode: string }): Promise<SyncAccessHandle>;
};

/** Opens a further handle if the browser allows several, otherwise the only one. */
export const openHandle = (file: FileSystemFileHandle): Promise<SyncAccessHandle> =>
  (file as WorkerFileHandle).createSyncAccessHandle({ mode });

const isPrivate = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> => bytes.buffer instanceof ArrayBuffer;

/**
 * A file that is read and written without waiting. A read or a write that moves fewer bytes than it was given is
 * continued until it moves none: at the end of the file, or if there is no room. Writes of shared memory go through a
 * block of private memory; reads do so only if the browser does not accept shared memory.
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
    const read = (part: Uint8Array, done: number) =>
      this.#handle.read(part as Uint8Array<ArrayBuffer>, { at: at + done });
    if (isPrivate(into)) return inParts(into, read);
    if (this.#readsShared) {
      try {
        return inParts(into, read);
      } catch {
        this.#readsShared = false;
      }
    }
    return inParts(into, (rest, done) => {
      const part = rest.subarray(0, BLOCK);
      const got = read(this.#blockOf(part.length), done);
      part.set(this.#block.subarray(0, got));
      return got;
    });
  }

  write(bytes: Uint8Array, at: number): number {
    return inParts(bytes, (rest, done) => {
      let part = rest;
      if (!isPrivate(part)) {
        part = this.#blockOf(Math.min(rest.length, BLOCK));
        part.set(rest.subarray(0, part.length));
      }
      return this.#handle.write(part as Uint8Array<ArrayBuffer>, { at: at + done });
    });
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

  /** Returns `size` bytes of private memory, the same each time. */
  #blockOf(size: number): Uint8Array<ArrayBuffer> {
    if (this.#block.length === 0) this.#block = new Uint8Array(BLOCK);
    return this.#block.subarray(0, size);
  }
}

/** Calls `move` with the rest of `bytes` until it moves none. Returns the number of bytes moved. */
function inParts(bytes: Uint8Array, move: (rest: Uint8Array, done: number) => number): number {
  let done = 0;
  for (let moved = 1; moved > 0 && done < bytes.length; done += moved) moved = move(bytes.subarray(done), done);
  return done;
}

/** Whether this worker can read and write cached files without waiting. */
export function hasSyncAccess(): boolean {
  return typeof FileSystemFileHandle === 'function' && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
}

/** Whether this worker can keep files, which others must not write meanwhile. */
export const keepsFiles = (): boolean => hasSyncAccess() && 'locks' in navigator;

/** Opens a file of this tab. A page that is just closing may hold it for up to `patience` milliseconds. */
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

/** Returns the folder of all models, or of copies; undefined if the browser has none. */
export async function cacheRoot(create: boolean, name = ROOT): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    const top = await navigator.storage.getDirectory();
    return await top.getDirectoryHandle(name, { create });
  } catch {
    return undefined;
  }
}

/**
 * Returns the folder name for an address, and for the type that its matrices are rounded to: a digest, because addresses are
 * longer than names may be. An absolute address has no space.
 */
export const cacheName = (url: string, quantType?: string): Promise<string> =>
  digestOf(quantType === undefined ? url : `${url} ${quantType}`);

/**
 * Takes a name's lock and returns the function that releases it. Undefined if another holder keeps it for more than
 * `patience` milliseconds, which a page that is just closing does not.
 */
export function lock(name: string, patience: number): Promise<(() => void) | undefined> {
  // A browser without locks stores nothing, and finds only files from a time when it had them.
  if (!('locks' in navigator)) return Promise.resolve(() => {});
  const waiting = patience > 0 ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
  return new Promise((resolve) => {
    navigator.locks
      .request(`qsf:${name}`, waiting, (held) => (held ? new Promise<void>(resolve) : resolve(undefined)))
      .catch(() => resolve(undefined));
  });
}

/**
 * Returns a small file's bytes, and the time of its last change in milliseconds since 1970. Empty if it does not exist.
 */
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
