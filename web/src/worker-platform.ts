// What a browser's worker does its own way. The package for Node has node/worker-platform.ts in its place.
import { QSFError } from './errors.js';
import type { ByteSource } from './sources/source.js';

/** What starts more workers like this one. */
export interface OwnScript {
  address: string;
  /** What a bundler has made of it. */
  type: 'module' | 'classic';
}

export function ownScript(): OwnScript {
  const { importScripts } = globalThis as { importScripts?: () => void };
  try {
    importScripts?.(); // there in both kinds, but a module's throws
    return { address: globalThis.location.href, type: 'classic' };
  } catch {
    return { address: globalThis.location.href, type: 'module' };
  }
}

/** Insecure pages have none, and others may not use them: neither has anything that other workers are started for. */
const locks = (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
/** The lock that this worker holds while others that it started are to run. */
const OTHERS = `qsf-${Math.random().toString(36).slice(2)}`;
/** Milliseconds: many more than a worker takes from letting go of its locks to its end. */
const LAST_STEPS = 50;

let endOthers: () => void;

/** To be waited for before others are started. */
export function beforeOthers(): Promise<void> {
  return new Promise((ready) => {
    const held = () =>
      new Promise<void>((resolve) => {
        endOthers = resolve;
        ready();
      });
    if (locks) locks.request(OTHERS, held).catch(() => ready());
    else ready();
  });
}

/** The name of one that is to do something. Its address cannot tell the lock: bundlers have words of their own there. */
export const nameOther = (task: string): string => `${task} ${OTHERS}`;

/** In one of the others, whose name this is: ends it when it gets the lock. */
export function endWithStarter(name: string): void {
  const close = () => new Promise(() => globalThis.close());
  locks?.request(name.split(' ')[1]!, { mode: 'shared' }, close).catch(() => {});
}

/**
 * Resolves when the others, which must be idle, have ended. A worker that ends while Chromium has yet to tell it that another
 * one did stays for ever, with that one's thread: the message goes with the queue that it waits in.
 */
export async function afterOthers(): Promise<void> {
  const all = await locks?.query().catch(() => undefined);
  if (!all?.pending?.some(({ name }) => name === OTHERS)) return;
  endOthers();
  await locks?.request(OTHERS, () => {});
  await new Promise((resolve) => setTimeout(resolve, LAST_STEPS));
}

/** The WebAssembly module at an address. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: 'same-origin' });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new QSFError('network_error', `The WebAssembly module ${url} could not be fetched: ${why}.`, { url, cause });
  }
  if (!response.ok) {
    const { status } = response;
    throw new QSFError(
      'http_status',
      `The WebAssembly module ${url} answered ${status}; put the package's .wasm files there, or say where they are by ` +
        'wasmUrl.',
      { url, status },
    );
  }
  const type = response.headers.get('Content-Type') ?? '';
  try {
    if (type.startsWith('application/wasm')) return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new QSFError(
      'unsupported_host',
      `${url}, which answers with ${type || 'no type'}, is not the package's WebAssembly module: ${why}`,
      { url, cause },
    );
  }
}

/** Files are opened by pages, which give a File. */
export function openFile(url: string): Promise<ByteSource> {
  throw new QSFError('bad_argument', `${url} is a file: give it as a File or Blob.`);
}
