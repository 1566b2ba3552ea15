// The parts of ../platform.ts that differ in Node: threads of its own, and files in addition to addresses. The build
// uses it in place of that file.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { QSFError } from '../errors.js';
import { NodeWorker } from './thread.js';

/** Node has no private file system in which a worker could keep models. */
export const keepsModels = false;

/**
 * Returns an http(s) or file: address without its fragment, and any other text as the file: address of a path, which is
 * a directory's if it ends with a slash. Throws bad_argument for other schemes.
 */
export function absolute(address: string | URL): string {
  const text = String(address);
  if (!/^[a-z][a-z\d+.-]+:/i.test(text)) return pathToFileURL(resolve(text)).href + (/[/\\]$/.test(text) ? '/' : '');
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new QSFError('bad_argument', `"${text}" is not an address`);
  }
  if (!['http:', 'https:', 'file:'].includes(url.protocol))
    throw new QSFError('bad_argument', `"${text}" is neither an http(s) nor a file: address, nor a path`);
  url.hash = '';
  return url.href;
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
