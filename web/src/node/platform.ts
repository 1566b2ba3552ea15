// What Node does its own way: threads of its own, and files beside addresses. In place of ../platform.ts.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { QSFError } from '../errors.js';
import { NodeWorker } from './thread.js';

/** There is no private file system that a worker could keep models in. */
export const keepsModels = false;

/** An http(s) or file: address as it is, anything else as the file: address of a path. */
export function absolute(address: string | URL): string {
  const text = String(address);
  if (!/^[a-z][a-z\d+.-]+:/i.test(text)) return pathToFileURL(resolve(text)).href;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new QSFError('bad_argument', `"${text}" is not an address.`);
  }
  if (!['http:', 'https:', 'file:'].includes(url.protocol))
    throw new QSFError('bad_argument', `"${text}" is neither an http(s) nor a file: address, nor a path.`);
  url.hash = '';
  return url.href;
}

/** An address or a path of one of the package's own files. */
export const ownFile = (_name: string, address: string | URL): string => absolute(address);

/** Starts the worker; resolves once it listens. */
export async function startWorker(given: string | undefined): Promise<Worker> {
  const worker = new NodeWorker(given ?? new URL('./node-worker.js', import.meta.url), { name: 'qsf' });
  await new Promise<void>((resolve, reject) => {
    worker.addEventListener('message', () => resolve(), { once: true });
    worker.addEventListener('error', (event) => {
      const { message } = event as ErrorEvent;
      reject(new QSFError('unsupported_host', `The worker could not run: ${message}.`));
    });
  });
  return worker as unknown as Worker;
}
