// A service worker that serves an application's own files without a network. It ignores models, because the package
// keeps them itself and opens a complete one without its server.

import { QSFError } from './errors.js';
import { checkKind, checkKnown, kindOf, shown } from './page/options.js';

export interface OfflineOptions {
  /** Any text that changes when a file does, such as a digest of all files. */
  version: string;
  /** Addresses of all the application's files, relative to the service worker: pages, scripts, WebAssembly modules. */
  files: readonly string[];
  /**
   * Digests of some of the files, by their addresses, in the form of Subresource Integrity: `sha256-…`. A file with
   * another digest ends the installation. Digests of addresses that are not in `files` have no effect. `digestsIn()`
   * returns the digests of the package.
   */
  integrity?: Readonly<Record<string, string>> | undefined;
  /** The prefix of the caches' names. Default `qsf-offline`. */
  name?: string | undefined;
  /**
   * Adds the headers of cross-origin isolation to pages and scripts. From the second visit on, threads are then
   * available even if the server cannot send the headers. Default false.
   */
  isolate?: boolean | undefined;
}

/** The used part of a service worker's global scope, because TypeScript's own types exclude those of a page. */
interface Scope {
  readonly location: Location;
  addEventListener(type: 'install' | 'activate', listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void;
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
}
interface ExtendableEvent {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** Digests of the package's files by name. The build defines them. */
declare const QSF_DIGESTS: Readonly<Record<string, string>> | undefined;

/**
 * Returns the digests of the package's `index.js`, `worker.js` and WebAssembly modules as published, by their addresses
 * in `folder`, which is relative to the service worker. Use them for `integrity` if the application has copies of these
 * files. A file that a bundler has changed has another digest.
 */
export function digestsIn(folder = './'): Record<string, string> {
  text('folder', folder);
  const digests = typeof QSF_DIGESTS === 'undefined' ? {} : QSF_DIGESTS;
  return Object.fromEntries(
    Object.entries(digests).map(([name, digest]) => [`${folder.replace(/\/?$/, '/')}${name}`, digest]),
  );
}

/**
 * Installs the service worker's listeners. Call it once, at the top of the service worker's script. Throws bad_argument for
 * options that are none.
 */
export function serveOffline(options: OfflineOptions): void {
  const { version, files, integrity, name, isolate } = checked(options);
  const scope = globalThis as unknown as Scope;
  const current = `${name}-${version}`;
  const place = (file: string) => {
    if (URL.canParse(file, scope.location.href)) return new URL(file, scope.location.href).href;
    throw new QSFError('bad_argument', `"${file}" is not an address`);
  };
  const digests = new Map(Object.entries(integrity).map(([file, digest]) => [place(file), digest]));
  const kept = new Map(files.map((file) => [place(file), digests.get(place(file))]));

  scope.addEventListener('install', (event) => {
    event.waitUntil(fill(current, kept).then(() => scope.skipWaiting()));
  });
  scope.addEventListener('activate', (event) => {
    event.waitUntil(removeOthers(name, current).then(() => scope.clients.claim()));
  });
  scope.addEventListener('fetch', (event) => {
    const { request } = event;
    const address = new URL(request.url);
    address.search = address.hash = '';
    if (request.method !== 'GET' || request.headers.has('Range') || !kept.has(address.href)) return;
    event.respondWith(answer(current, address.href, request).then((response) => anew(response, isolate)));
  });
}

const OPTIONS = { version: true, files: true, integrity: true, name: true, isolate: true } satisfies {
  [K in keyof OfflineOptions]-?: true;
};

/** Returns all options. Throws bad_argument. */
function checked(options: OfflineOptions) {
  checkKnown('serveOffline()', options, OPTIONS);
  const { version, files, integrity = {}, name = 'qsf-offline', isolate = false } = options;
  text('version', version);
  text('name', name);
  if (!Array.isArray(files) || !files.every((file) => typeof file === 'string'))
    throw new QSFError('bad_argument', `files is ${kindOf(files)}; it must be a list of addresses`);
  checkKind('integrity', 'object', integrity);
  for (const [file, digest] of Object.entries(integrity)) text(`integrity of ${file}`, digest);
  checkKind('isolate', 'boolean', isolate);
  return { version, files: files as readonly string[], integrity, name, isolate };
}

function text(name: string, value: unknown): void {
  if (typeof value !== 'string') throw new QSFError('bad_argument', `${name} is ${shown(value)}; it must be a text`);
}

/**
 * Fetches every file past the browser's own cache. Keeps nothing unless every file arrives and has its type and its
 * digest.
 */
async function fill(name: string, files: ReadonlyMap<string, string | undefined>): Promise<void> {
  const fetched = await Promise.all(
    Array.from(files, async ([address, integrity = '']) => {
      const response = await fetch(new Request(address, { cache: 'reload', integrity }));
      const lack = lackOf(address, response);
      if (lack !== undefined) throw new Error(`${address} ${lack}: nothing is kept for use without a network.`);
      return [address, response] as const;
    }),
  );
  const cache = await caches.open(name);
  await Promise.all(fetched.map(([address, response]) => cache.put(address, response)));
}

/** The content types that are accepted for the end of a name. The last row refuses pages for every other name. */
const TYPES: readonly (readonly [end: RegExp, type: RegExp])[] = [
  [/(^|\/|\.html?|\/[^./]+)$/, /./],
  [/\.m?js$/, /^(text|application)\/(x-)?(java|ecma)script/],
  [/\.wasm$/, /^(application\/(wasm|octet-stream)|$)/],
  [/\.css$/, /^text\/css/],
  [/$/, /^(?!text\/html|application\/xhtml)/],
];

/**
 * Returns the fault of an answer, such as the page that some servers send for a missing file; undefined if it has none.
 */
function lackOf(address: string, { ok, status, headers }: Response): string | undefined {
  if (!ok) return `answers ${status}`;
  const type = headers.get('Content-Type') ?? '';
  const { pathname } = new URL(address);
  const [, wanted] = TYPES.find(([end]) => end.test(pathname))!;
  return wanted.test(type.toLowerCase())
    ? undefined
    : `answers with ${type || 'no type'}, which is another kind of file`;
}

async function removeOthers(name: string, current: string): Promise<void> {
  for (const other of await caches.keys()) {
    if (other.startsWith(`${name}-`) && other !== current) await caches.delete(other);
  }
}

async function answer(name: string, address: string, request: Request): Promise<Response> {
  const kept = await (await caches.open(name)).match(address);
  return kept ?? fetch(request);
}

/** Returns the response without its mark of a redirect, because a browser refuses a redirected response for a page. */
function anew(response: Response, isolate: boolean): Response {
  // The body of an opaque response cannot be read.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  if (isolate) {
    headers.set('Cross-Origin-Opener-Policy', 'same-origin');
    headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  }
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
