// Saved sequences by name, in the origin's private file system: /qsf-saved/<name>.<n>.qsfs. A file gets such a name once
// it is whole. The highest number counts, and earlier files are removed after that.
import { QSFError } from '../errors.js';
import { MiB } from '../constants.js';
import { lock, openHandle } from './opfs.js';
import type { SavedEntry } from '../types.js';

const ROOT = 'qsf-saved';
const FILE = /^(.+)\.(\d+)\.qsfs$/;
const UNFINISHED = 'unfinished';
const LONGEST = 60;
/** Bytes written at once. */
const BLOCK = 4 * MiB;
/** Milliseconds that another tab may take to store a file. */
const PATIENCE = 10_000;

type MovableHandle = FileSystemFileHandle & { move(into: FileSystemDirectoryHandle, name: string): Promise<void> };

/** A stored file by its name. */
interface Stored {
  name: string;
  n: number;
  handle: FileSystemFileHandle;
}

/** Throws bad_argument for a name that is none. */
export function savedName(name: string): string {
  if (typeof name === 'string' && name.length > 0 && name.length <= LONGEST) return name;
  throw new QSFError(
    'bad_argument',
    `name is ${JSON.stringify(name)}; it must be a text of 1 to ${LONGEST} characters`,
  );
}

/** Stores a file under a name, in place of an earlier one, which stays if that fails. Works in workers only. */
export async function storeSaved(name: string, file: Blob): Promise<void> {
  const root = await savedRoot(true);
  if (!root) throw new QSFError('unsupported_host', 'there is no private file system here, so nothing can be stored');
  const release = await lock('saved', PATIENCE);
  if (!release)
    throw new QSFError('bad_state', `another tab has been storing a sequence for ${PATIENCE / 1000} seconds`);
  try {
    const earlier = (await stored(root)).filter((one) => one.name === name);
    // A tab that was closed while it stored something may have left this file.
    await root.removeEntry(UNFINISHED).catch(() => {});
    const handle = (await root.getFileHandle(UNFINISHED, { create: true })) as MovableHandle;
    await write(handle, file);
    await handle.move(root, fileName(name, Math.max(0, ...earlier.map(({ n }) => n)) + 1));
    for (const one of earlier) await root.removeEntry(one.handle.name).catch(() => {});
  } catch (cause) {
    await root.removeEntry(UNFINISHED).catch(() => {});
    throw new QSFError('io_error', `the browser did not store ${name}: ${String(cause)}`, { cause });
  } finally {
    release();
  }
}

/** Returns the file of a name. Throws io_error if there is none. */
export async function storedFile(name: string): Promise<File> {
  const file = await findSaved(name);
  if (file) return file;
  throw new QSFError('io_error', `nothing is stored under the name ${name}`);
}

export async function findSaved(name: string): Promise<File | undefined> {
  const newest = (await newestOfAll()).get(name);
  return newest?.handle.getFile();
}

export async function listSaved(): Promise<SavedEntry[]> {
  const entries = [...(await newestOfAll()).values()].map(async ({ name, handle }) => {
    const { size, lastModified } = await handle.getFile();
    return { name, bytes: size, saved: lastModified };
  });
  return (await Promise.all(entries)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Removes the file of a name, if there is one. */
export async function removeSaved(name: string): Promise<void> {
  const root = await savedRoot(false);
  if (!root) return;
  for (const one of await stored(root)) if (one.name === name) await root.removeEntry(one.handle.name);
}

async function savedRoot(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    const top = await navigator.storage.getDirectory();
    return await top.getDirectoryHandle(ROOT, { create });
  } catch {
    return undefined;
  }
}

const fileName = (name: string, n: number) => `${encodeURIComponent(name)}.${String(n)}.qsfs`;

async function stored(root: FileSystemDirectoryHandle): Promise<Stored[]> {
  const all: Stored[] = [];
  for await (const handle of root.values()) {
    const [, name, n] = FILE.exec(handle.name) ?? [];
    if (name !== undefined && handle.kind === 'file')
      all.push({ name: decodeURIComponent(name), n: Number(n), handle });
  }
  return all;
}

async function newestOfAll(): Promise<Map<string, Stored>> {
  const root = await savedRoot(false);
  const newest = new Map<string, Stored>();
  for (const one of root ? await stored(root) : []) {
    if (one.n > (newest.get(one.name)?.n ?? -1)) newest.set(one.name, one);
  }
  return newest;
}

/** Writes a whole file to the disk. */
async function write(handle: FileSystemFileHandle, file: Blob): Promise<void> {
  const access = await openHandle(handle);
  try {
    for (let at = 0; at < file.size; at += BLOCK) {
      const block = new Uint8Array(await file.slice(at, at + BLOCK).arrayBuffer());
      for (let done = 0; done < block.length;) {
        const n = access.write(block.subarray(done), { at: at + done });
        if (n === 0) throw new Error('there is no room');
        done += n;
      }
    }
    access.flush();
  } finally {
    access.close();
  }
}
