// The parts of ../platform.ts that differ in Node: threads of its own, and files in addition to addresses. The build
// uses it in place of that file.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { QSFError } from '../errors.js';
import { NodeWorker } from './thread.js';

/** Node has no private file system in which a worker could keep models. */
export const keepsModels = false;

/**
 * Returns an http(s) or file: address without its fragment, and any other text as the file: address of a path. That of a
 * directory ends with a slash. Throws bad_argument for other schemes.
 */
export function absolute(address: string | URL): string {
  const text = String(address);
  if (!/^[a-z][a-z\d+.-]+:/i.test(text)) return ofFile(resolve(text), /[/\\]$/.test(text));
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new QSFError('bad_argument', `"${text}" is not an address`);
  }
  if (!['http:', 'https:', 'file:'].includes(url.protocol))
    throw new QSFError('bad_argument', `"${text}" is neither an http(s) nor a file: address, nor a path`);
  url.hash = '';
  return url.protocol === 'file:' && !url.pathname.endsWith('/') ? ofFile(fileURLToPath(url), false) : url.href;
}

/** Returns the file: address of a path. */
function ofFile(path: string, isNamedDirectory: boolean): string {
  const { href } = pathToFileURL(path);
  return (isNamedDirectory || isDirectory(path)) && !href.endsWith('/') ? `${href}/` : href;
}

/** Whether a path is a directory's. False also if the path cannot be read, which is refused when it is opened. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Returns the address of one of the package's own files, given as an address or a path. */
export const ownFile = (_name: string, address: string | URL): string => absolute(address);

/** Starts the worker. Resolves once it listens; rejects with unsupported_host. */
export async function startWorker(given: string | undefined): Promise<Worker> {
  const worker = new NodeWorker(given ?? new URL('./node-worker.js', import.meta.url), { name: 'qsf' });
  await new Promise<void>((resolve, reject) => {
    worker.addEventListener('message', () => resolve(), { once: true });
    worker.addEventListener('error', (event) => {
      const { message } = event as ErrorEvent;
      reject(new QSFError('unsupported_host', `the worker could not run: ${message}`));
    });
  });
  return worker as unknown as Worker;
}
