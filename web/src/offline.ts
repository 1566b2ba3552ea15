// A service worker that serves an application's own files without a network. Models are none of its business: the package
// keeps them itself, and opens a complete one without its server.

export interface OfflineOptions {
  /** Anything that changes when a file does, such as a digest of all. */
  version: string;
  /** Addresses of all the application's files, relative to the service worker: pages, scripts, WebAssembly modules. */
  files: readonly string[];
  /** Begins the names of caches. Default `qsf-offline`. */
  name?: string;
  /**
   * Pages and scripts get the headers of cross-origin isolation from here, so that threads are there also where the server
   * cannot send them, from the second visit on. Default false.
   */
  isolate?: boolean;
}

/** What of a service worker's global scope is used; TypeScript's own types exclude those of a page. */
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

/** To be called once, at the top of a service worker's script. */
export function serveOffline({ version, files, name = 'qsf-offline', isolate = false }: OfflineOptions): void {
  const scope = globalThis as unknown as Scope;
  const current = `${name}-${version}`;
  const kept = new Set(files.map((file) => new URL(file, scope.location.href).href));

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

/** Fetches every file past the browser's own cache; all are there, or nothing is. */
async function fill(name: string, files: Iterable<string>): Promise<void> {
  const cache = await caches.open(name);
  await cache.addAll(Array.from(files, (file) => new Request(file, { cache: 'reload' })));
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

/** The response as one that was not redirected, which a browser would refuse for a page. */
function anew(response: Response, isolate: boolean): Response {
  // One that cannot be read cannot be made anew.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  if (isolate) {
    headers.set('Cross-Origin-Opener-Policy', 'same-origin');
    headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  }
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
