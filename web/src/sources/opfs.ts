// Where cached models lie in the origin's private file system: /qsf/<name>/ holds `model`, a file with the model's own
// offsets, sparse while it is filled, and `journal` (journal.ts). Whoever holds the lock of a name may write there.

const ROOT = 'qsf';
export const MODEL_FILE = 'model';
export const JOURNAL_FILE = 'journal';

/** FileSystemSyncAccessHandle, which only workers have. */
export interface SyncAccess {
  read(into: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

type WorkerFileHandle = FileSystemFileHandle & { createSyncAccessHandle(): Promise<SyncAccess> };

/** Whether this worker can read and write cached files without waiting. */
export function hasSyncAccess(): boolean {
  return typeof FileSystemFileHandle === 'function' && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
}

/** Opens a file for this worker alone. A page that is just being left may hold it for up to `patience` milliseconds. */
export async function syncAccess(
  folder: FileSystemDirectoryHandle,
  name: string,
  patience: number,
): Promise<SyncAccess> {
  const file = (await folder.getFileHandle(name, { create: true })) as WorkerFileHandle;
  const end = performance.now() + patience;
  for (;;) {
    try {
      return await file.createSyncAccessHandle();
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
  return new Promise((resolve) => {
    navigator.locks
      .request(`qsf:${name}`, { signal: AbortSignal.timeout(patience) }, () => new Promise<void>(resolve))
      .catch(() => resolve(undefined));
  });
}

/** A small file's bytes; empty when it is not there. */
export async function readWhole(folder: FileSystemDirectoryHandle, name: string): Promise<Uint8Array> {
  try {
    const handle = await folder.getFileHandle(name);
    return new Uint8Array(await (await handle.getFile()).arrayBuffer());
  } catch {
    return new Uint8Array();
  }
}
