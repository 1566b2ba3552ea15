// What a worker in Node does its own way. In place of ../worker-platform.ts.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { QSFError } from '../errors.js';
import { fetchModule as fetchRemote } from '../worker-platform.js';
import type { OwnScript } from '../worker-platform.js';
import { FileSource } from './file-source.js';

export const ownScript = (): OwnScript => ({ address: globalThis.location.href, type: 'module' });

/** Threads end with the one that started them. */
export const beforeOthers = async (): Promise<void> => {};
export const nameOther = (task: string): string => task;
export const endWithStarter = (): void => {};
export const afterOthers = async (): Promise<void> => {};

/** The WebAssembly module at an address or in a file. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  if (!url.startsWith('file:')) return fetchRemote(url);
  try {
    return await WebAssembly.compile(await readFile(fileURLToPath(url)));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new QSFError('unsupported_host', `The WebAssembly module ${url} did not load: ${why}`, { url, cause });
  }
}

export const openFile = (url: string): Promise<FileSource> => FileSource.open(fileURLToPath(url));
