// The parts that differ between a page and Node: the start of the worker, and the base of relative addresses. The
// package for Node has node/platform.ts in its place.
import { QSFError, messageOf } from './errors.js';
import { engineInThread } from './thread.js';

/** Whether a worker can keep models and read them again. */
export const keepsModels = true;

/** The address of this file. Written next to `new URL`, it would make a bundler take all files for assets. */
const here = import.meta.url;

/** The folder of packages that Vite's dev server has bundled again. The package's other files are not in it. */
const VITE_DEPS = '/.vite/deps/';
const VITE_ADVICE = "with Vite, add optimizeDeps: { exclude: ['qsf'] } to its configuration";

/**
 * Returns an absolute http(s) address without its fragment; a relative one is resolved against the page. Throws
 * bad_argument for anything else.
 */
export function absolute(address: string | URL): string {
  let url: URL;
  try {
    url = new URL(address, base());
  } catch {
    throw new QSFError('bad_argument', `"${String(address)}" is not an address`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new QSFError('bad_argument', `"${url.href}" is not an http(s) address; give local files as a File or Blob`);
  }
  url.hash = '';
  return url.href;
}

/** Returns the absolute address of one of the package's own files. It may have any scheme that the browser can load. */
export function ownFile(name: string, address: string | URL): string {
  try {
    return new URL(address, base()).href;
  } catch {
    throw new QSFError('bad_argument', `${name} is "${String(address)}"; it must be an address`);
  }
}

const base = () => globalThis.document?.baseURI ?? globalThis.location.href;

/**
 * Starts the worker from `given` or from the package's location, or takes the engine that this thread offers. Resolves once
 * it listens; rejects with unsupported_host.
 */
export async function startWorker(given: string | undefined): Promise<Worker> {
  // An engine in this thread comes first, since a shared worker of Firefox may wait in new Worker() for ever.
  const inThread = engineInThread();
  if (inThread) return inThread;
  if (!('Worker' in globalThis)) {
    const advice = "import 'qsf/worker' there too, so that the engine runs in the same thread";
    throw new QSFError(
      'unsupported_host',
      `no worker can be started here, as in shared and service workers: ${advice}`,
    );
  }
  try {
    return await starting(given);
  } catch (error) {
    if (globalThis.origin !== 'null' || error instanceof QSFError) throw error;
    const why = messageOf(error);
    const sentence = `the browser refused to start the worker: ${why} A sandboxed frame needs allow-same-origin`;
    throw new QSFError('unsupported_host', sentence, { cause: error });
  }
}

async function starting(given: string | undefined): Promise<Worker> {
  if (given !== undefined) return listening(() => at(given), given);
  const address = bundledAddress();
  try {
    return await listening(isOwn(address) ? bundled : () => at(address), address);
  } catch (error) {
    if (!here.includes(VITE_DEPS)) throw error;
    const source = new URL(here.slice(0, here.indexOf(VITE_DEPS)) + '/qsf/worker.js').href;
    return listening(() => at(source), source);
  }
}

/** Starts the package's own worker. Bundlers recognize this expression and write the address of their file into it. */
const bundled = () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'qsf' });

/**
 * Returns the address in bundled(). Only a constructor of workers gets it, so a constructor that starts nothing
 * replaces the real one for the call.
 */
function bundledAddress(): string {
  const { Worker } = globalThis;
  // The address if a bundler starts workers by other means.
  let address = new URL('worker.js', here).href;
  globalThis.Worker = function (given: string | URL) {
    address = new URL(given, base()).href;
  } as unknown as typeof Worker;
  try {
    bundled();
  } finally {
    globalThis.Worker = Worker;
  }
  return address;
}

/** Whether a worker may be started from an address. Addresses of files and of sandboxed frames have no origin. */
function isOwn(address: string): boolean {
  const { origin } = new URL(address);
  return origin === globalThis.location.origin || origin === 'null';
}

const importers = new Map<string, string>();

/**
 * Returns a worker that runs the script at an address. Browsers start no script of another origin, but let a worker
 * import it.
 */
function at(address: string): Worker {
  let script = isOwn(address) ? address : importers.get(address);
  if (script === undefined) {
    const text = `import ${JSON.stringify(address)};`;
    script = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
    // The object URL stays, because the worker's own threads start from it too.
    importers.set(address, script);
  }
  return new Worker(script, { type: 'module', name: 'qsf' });
}

/** Resolves with a worker at its first message; rejects with unsupported_host. `address` is its script's. */
async function listening(start: () => Worker, address: string): Promise<Worker> {
  const refused = new Set<string>();
  const note = ({ effectiveDirective }: SecurityPolicyViolationEvent) => refused.add(effectiveDirective);
  const { document } = globalThis as { document?: Document };
  document?.addEventListener('securitypolicyviolation', note);
  try {
    const worker = start();
    const failure = await new Promise<string | undefined>((resolve) => {
      worker.addEventListener('message', () => resolve(undefined), { once: true });
      worker.addEventListener('error', ({ message }) => resolve(message || ''), { once: true });
    });
    if (failure === undefined) return worker;
    worker.terminate();
    const why = failure === '' ? await whyNotLoaded(address, refused) : failure;
    throw new QSFError('unsupported_host', `the worker could not run: ${why}`);
  } finally {
    document?.removeEventListener('securitypolicyviolation', note);
  }
}

/**
 * Returns the reason why a script did not load, from the page's policy violations and the answer at the script's
 * address.
 */
async function whyNotLoaded(address: string, refused: ReadonlySet<string>): Promise<string> {
  const advice = here.includes(VITE_DEPS)
    ? VITE_ADVICE
    : "put the package's worker.js and .wasm files next to the bundle, or give the former's address as workerUrl";
  if (!address.startsWith('http')) return `the bundler did not bring its script; ${advice}`;
  const policy = isOwn(address)
    ? 'its origin in worker-src'
    : 'blob: and its origin in worker-src, and its origin in script-src and connect-src';
  let answer: string | undefined;
  try {
    answer = lackOf(await fetch(address, { method: 'HEAD' }));
  } catch (error) {
    const cors = isOwn(address) ? '' : ', or its server does not let this origin read it';
    await new Promise((resolve) => setTimeout(resolve)); // a violation is an event of a later task
    if (refused.size === 0) return `its script ${address} cannot be reached${cors}: ${messageOf(error)}`;
  }
  if (refused.has('worker-src')) return `the page's Content-Security-Policy refuses ${address}; it needs ${policy}`;
  if (answer !== undefined) return `${address} ${answer}; ${advice}`;
  return `its script ${address} did not load; see the console, and whether the page's Content-Security-Policy has ${policy}`;
}

/** Returns the fault of an answer for a script; undefined if none is visible. */
function lackOf({ ok, status, headers }: Response): string | undefined {
  if (!ok) return `answers ${status}`;
  const type = headers.get('Content-Type') ?? 'nothing';
  return /javascript|ecmascript/.test(type) ? undefined : `answers with ${type}, which is no script`;
}
