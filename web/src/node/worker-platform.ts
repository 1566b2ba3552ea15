// The parts of ../worker-platform.ts that differ in Node. The build uses it in place of that file.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { QSFError, messageOf } from '../errors.js';
import { fetchModule as fetchRemote } from '../worker/worker-platform.js';
import type { OwnScript } from '../worker/worker-platform.js';
import { FileSource } from './file-source.js';

export { fetchFile } from './fetch.js';

export const ownScript = (): OwnScript => ({ address: globalThis.location.href, type: 'module' });

/** Threads end with the thread that started them. */
export const beforeOthers = async (): Promise<void> => {};
export const nameOther = (task: string): string => task;
export const endWithStarter = (): void => {};
export const afterOthers = async (): Promise<void> => {};
export const tellUncaught = (): void => {};

/** Returns the WebAssembly module at an address or in a file. Rejects with unsupported_host if a file does not load. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  if (!url.startsWith('file:')) return fetchRemote(url);
  try {
    return await WebAssembly.compile(await readFile(fileURLToPath(url)));
  } catch (cause) {
    const why = messageOf(cause);
    throw new QSFError('unsupported_host', `the WebAssembly module ${url} did not load: ${why}`, { url, cause });
  }
}

export const openFile = (url: string): Promise<FileSource> => FileSource.open(fileURLToPath(url));
