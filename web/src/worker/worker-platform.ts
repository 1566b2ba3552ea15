// The parts of a worker that differ between browsers and Node. The package for Node has node/worker-platform.ts in its
// place.
import { QSFError, messageOf } from '../errors.js';
import { policyNeeds, policyRefuses } from '../policy.js';
import type { ByteSource } from '../sources/source.js';

/** The script that starts further workers like this one. */
export interface OwnScript {
  address: string;
  /** The kind of script that a bundler has made. */
  type: 'module' | 'classic';
}

export function ownScript(): OwnScript {
  const { importScripts } = globalThis as { importScripts?: () => void };
  try {
    importScripts?.(); // exists in both kinds, but throws in a module
    return { address: globalThis.location.href, type: 'classic' };
  } catch {
    return { address: globalThis.location.href, type: 'module' };
  }
}

/** Undefined in insecure pages; some other pages may not use them. Neither kind of page needs further workers. */
const locks = (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
/** The lock that this worker holds while the workers that it started may run. */
const OTHERS = `qsf-${Math.random().toString(36).slice(2)}`;
/** Milliseconds, many more than a worker needs from the release of its locks to its end. */
const LAST_STEPS = 50;

let endOthers: (() => void) | undefined;
/** Whether this worker has started others, which may have ended since. */
let hasOthers = false;

/** Takes the lock. Await it before other workers are started. */
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

/**
 * Returns the name of a worker with a task, which is about to be started. The lock is in the name, because bundlers write
 * their own parameters into addresses.
 */
export function nameOther(task: string): string {
  hasOthers = true;
  return `${task} ${OTHERS}`;
}

/** Runs in such a worker, with its name: ends the worker when it gets the lock. */
export function endWithStarter(name: string): void {
  const close = () => new Promise(() => globalThis.close());
  locks?.request(name.split(' ')[1]!, { mode: 'shared' }, close).catch(() => {});
}

/**
 * Resolves when the other workers, which must be idle, have ended. A worker that ends before it has read Chromium's
 * message about another one's end stays for ever, together with that one's thread, because the message disappears with
 * its queue.
 */
export async function afterOthers(): Promise<void> {
  if (!hasOthers) return;
  endOthers?.();
  await locks?.request(OTHERS, () => {}).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, LAST_STEPS));
}

/**
 * Reports an unhandled rejection as an uncaught error, so that the starter of this worker gets it. Browsers report only
 * uncaught errors to the starter; Node reports both.
 */
export function tellUncaught(): void {
  globalThis.addEventListener('unhandledrejection', ({ reason }) => globalThis.reportError(reason));
}

/** Returns the WebAssembly module at an address. Rejects with network_error, http_status or unsupported_host. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: 'same-origin' });
  } catch (cause) {
    const refuses = await policyRefuses(url, fetch);
    const why = refuses ? policyNeeds(url) : messageOf(cause);
    const sentence = `the WebAssembly module ${url} could not be fetched: ${why}`;
    throw new QSFError(refuses ? 'unsupported_host' : 'network_error', sentence, { url, cause });
  }
  if (!response.ok) {
    const { status } = response;
    throw new QSFError(
      'http_status',
      `the WebAssembly module ${url} answered ${status}; put the package's .wasm files there, or name them by ` +
        'wasmUrl',
      { url, status },
    );
  }
  const type = response.headers.get('Content-Type') ?? '';
  try {
    if (type.startsWith('application/wasm')) return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const why = messageOf(cause);
    throw new QSFError(
      'unsupported_host',
      `${url}, which answers with ${type || 'no type'}, is not the package's WebAssembly module: ${why}`,
      { url, cause },
    );
  }
}

/** Requests a model's bytes. */
export const fetchFile: typeof fetch = (input, init) => fetch(input, init);

/** Files are opened by pages, which pass a File. */
export function openFile(url: string): Promise<ByteSource> {
  throw new QSFError('bad_argument', `${url} is a file: give it as a File or Blob`);
}
