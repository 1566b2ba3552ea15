// What a page does its own way: starting the worker, and what an address is relative to. The package for Node has
// node/platform.ts in its place.
import { QSFError } from './errors.js';

/** Whether models are kept where a worker can read them again. */
export const keepsModels = true;

/** Where this file is; bundlers say something else. Beside `new URL` they would take all files for assets. */
const here = import.meta.url;

/** In a package that Vite's dev server has put together anew, files are no longer beside this one. */
const VITE_DEPS = '/.vite/deps/';
const VITE_ADVICE = "with Vite, add optimizeDeps: { exclude: ['qsf'] } to its configuration";

/** An absolute http(s) address; relative ones are the page's. */
export function absolute(address: string | URL): string {
  let url: URL;
  try {
    url = new URL(address, base());
  } catch {
    throw new QSFError('bad_argument', `"${String(address)}" is not an address.`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new QSFError('bad_argument', `"${url.href}" is not an http(s) address; give local files as a File or Blob.`);
  }
  url.hash = '';
  return url.href;
}

/** An address of one of the package's own files, which may be of any kind that the browser can load. */
export function ownFile(name: string, address: string | URL): string {
  try {
    return new URL(address, base()).href;
  } catch {
    throw new QSFError('bad_argument', `${name} is "${String(address)}"; it must be an address.`);
  }
}

const base = () => globalThis.document?.baseURI ?? globalThis.location.href;

/** Starts the worker, from `given` or from where the package lies; resolves once it listens. */
export async function startWorker(given: string | undefined): Promise<Worker> {
  if (given !== undefined) return listening(at(given), given);
  try {
    return await listening(beside(), nameOf('worker.js'));
  } catch (error) {
    if (!here.includes(VITE_DEPS)) throw error;
    const source = new URL(here.slice(0, here.indexOf(VITE_DEPS)) + '/qsf/worker.js').href;
    return listening(at(source), source);
  }
}

/** The worker beside this file. Bundlers know these very words. */
function beside(): Worker {
  try {
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'qsf' });
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== 'SecurityError') throw error;
    return at(nameOf('worker.js'));
  }
}

/** Where a file of the package's folder is, if nobody has moved this one. */
const nameOf = (name: string) => new URL(name, here).href;

const importers = new Map<string, string>();

/** A worker that runs the script at an address. From another origin none may be started, but one may import it. */
function at(address: string): Worker {
  const { origin } = new URL(address);
  const own = origin === globalThis.location.origin || origin === 'null';
  let script = own ? address : importers.get(address);
  if (script === undefined) {
    const text = `import ${JSON.stringify(address)};`;
    script = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
    // Kept: the worker's own threads begin with it too.
    importers.set(address, script);
  }
  return new Worker(script, { type: 'module', name: 'qsf' });
}

/** Resolves with the worker's first message; `address` is where its script should be. */
async function listening(worker: Worker, address: string): Promise<Worker> {
  const started = new Promise<string | undefined>((resolve) => {
    worker.addEventListener('message', () => resolve(undefined), { once: true });
    worker.addEventListener('error', ({ message }) => resolve(message || ''), { once: true });
  });
  const failure = await started;
  if (failure === undefined) return worker;
  worker.terminate();
  const why = failure === '' ? await whyNotLoaded(address) : failure;
  throw new QSFError('unsupported_host', `The worker could not run: ${why}.`);
}

/** What may have kept a script from being loaded, of which browsers tell nothing. */
async function whyNotLoaded(address: string): Promise<string> {
  const advice = here.includes(VITE_DEPS)
    ? VITE_ADVICE
    : "put the package's worker.js and .wasm files beside the bundle, or give the former's address as workerUrl";
  if (!address.startsWith('http')) return `the bundler did not bring its script; ${advice}`;
  const lacking = await lackOf(address);
  if (lacking !== undefined) return `${address} ${lacking}; ${advice}`;
  const other = new URL(address).origin !== globalThis.location.origin;
  const policy = other ? 'blob: in worker-src, and its origin in script-src' : 'its origin in worker-src';
  return `its script ${address} did not load; see the console, and whether the page's Content-Security-Policy has ${policy}`;
}

/** What is wrong with what an address answers, for a script; undefined where nothing is seen. */
async function lackOf(address: string): Promise<string | undefined> {
  try {
    const response = await fetch(address, { method: 'HEAD' });
    if (!response.ok) return `answers ${response.status}`;
    const type = response.headers.get('Content-Type') ?? 'nothing';
    return /javascript|ecmascript/.test(type) ? undefined : `answers with ${type}, which is no script`;
  } catch {
    return undefined;
  }
}
