// A service worker that keeps an application's files, before servers that answer anything.
import { createHash } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { digestsIn, serveOffline } from '../../web/src/offline.js';
import type { OfflineOptions } from '../../web/src/offline.js';

const ORIGIN = 'https://app.test/';
const PAGE = '<!doctype html><title>App</title>';
/** What is served, by its address, with its type. */
let served: Map<string, [body: string, type: string | undefined, status?: number]>;
/** What browsers keep, by the names of caches. */
let stored: Map<string, Map<string, Response>>;
let asked: Request[];
let listeners: Map<string, (event: object) => void>;

beforeEach(() => {
  served = new Map([
    [ORIGIN, [PAGE, 'text/html; charset=utf-8']],
    [`${ORIGIN}app.js`, ['run()', 'text/javascript; charset=utf-8']],
    [`${ORIGIN}worker.js`, ['work()', 'application/javascript']],
    [`${ORIGIN}qsf-simd.wasm`, ['\0asm', 'application/wasm']],
    [`${ORIGIN}style.css`, ['a {}', 'text/css']],
    [`${ORIGIN}icon.svg`, ['<svg/>', 'image/svg+xml']],
    [`${ORIGIN}help`, [PAGE, 'text/html']],
  ]);
  stored = new Map();
  asked = [];
  listeners = new Map();
  vi.stubGlobal('location', new URL(`${ORIGIN}sw.js`));
  vi.stubGlobal('addEventListener', (type: string, listener: (event: object) => void) => listeners.set(type, listener));
  vi.stubGlobal('skipWaiting', async () => undefined);
  vi.stubGlobal('caches', {
    open: async (name: string) => {
      const cache = stored.get(name) ?? new Map<string, Response>();
      stored.set(name, cache);
      return {
        put: async (address: string, response: Response) => void cache.set(address, response),
        match: async (address: string) => cache.get(address)?.clone(),
        addAll: async (requests: Request[]) => {
          for (const request of requests) cache.set(request.url, await fetch(request));
        },
      };
    },
  });
  vi.stubGlobal('fetch', async (request: Request) => {
    asked.push(request);
    const [body, type, status = 200] = served.get(request.url) ?? [PAGE, 'text/html'];
    const digest = `sha256-${createHash('sha256').update(body).digest('base64')}`;
    if (request.integrity !== '' && request.integrity !== digest) throw new TypeError('Failed to fetch');
    const response = new Response(body, { status });
    response.headers.delete('Content-Type');
    if (type !== undefined) response.headers.set('Content-Type', type);
    return response;
  });
});
afterEach(() => vi.unstubAllGlobals());

const FILES = ['./', 'app.js', 'worker.js', 'qsf-simd.wasm', 'style.css', 'icon.svg', 'help'];

const digest = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;

function install(options: Partial<OfflineOptions> = {}): Promise<unknown> {
  serveOffline({ version: '1', files: FILES, ...options });
  let work: Promise<unknown> | undefined;
  listeners.get('install')!({ waitUntil: (given: Promise<unknown>) => (work = given) });
  return work!;
}

async function answered(address: string): Promise<string> {
  let answer: Promise<Response> | undefined;
  listeners.get('fetch')!({
    request: new Request(address),
    respondWith: (given: Promise<Response>) => (answer = given),
  });
  return (await answer!).text();
}

describe('installing', () => {
  it('keeps every file, past the browser’s own cache', async () => {
    await install();
    expect([...stored.keys()]).toEqual(['qsf-offline-1']);
    expect([...stored.get('qsf-offline-1')!.keys()]).toEqual(FILES.map((file) => new URL(file, ORIGIN).href));
    expect(asked.every(({ cache }) => cache === 'reload')).toBe(true);
    served.clear();
    expect(await answered(`${ORIGIN}worker.js`)).toBe('work()');
  });

  it.each(['worker.js', 'qsf-simd.wasm', 'style.css', 'icon.svg'])(
    'keeps nothing when a server answers with its page in place of %s',
    async (name) => {
      served.delete(`${ORIGIN}${name}`);
      await expect(install()).rejects.toThrow(
        `${ORIGIN}${name} answers with text/html, which is another kind of file: nothing is kept for use without a network.`,
      );
      expect(stored.size).toBe(0);
    },
  );

  it.each<[string, string | undefined]>([
    ['worker.js', 'text/plain'],
    ['worker.js', undefined],
    ['qsf-simd.wasm', 'text/javascript'],
    ['style.css', 'application/octet-stream'],
    ['icon.svg', 'application/xhtml+xml'],
  ])('keeps nothing when %s comes as %s', async (name, type) => {
    served.set(`${ORIGIN}${name}`, ['x', type]);
    await expect(install()).rejects.toThrow(/which is another kind of file/);
    expect(stored.size).toBe(0);
  });

  it.each<[string, string | undefined]>([
    ['qsf-simd.wasm', 'application/octet-stream'],
    ['qsf-simd.wasm', undefined],
    ['app.js', 'application/x-javascript'],
    ['icon.svg', 'text/xml'],
  ])('takes %s as %s', async (name, type) => {
    served.set(`${ORIGIN}${name}`, ['x', type]);
    await install();
    expect(await answered(`${ORIGIN}${name}`)).toBe('x');
  });

  it('keeps nothing when a file is not there', async () => {
    served.set(`${ORIGIN}app.js`, ['No.', 'text/javascript', 404]);
    await expect(install()).rejects.toThrow(`${ORIGIN}app.js answers 404: nothing is kept`);
    expect(stored.size).toBe(0);
  });

  it('has digests checked that the package was built with, however files are named', async () => {
    vi.stubGlobal('QSF_DIGESTS', {
      'worker.js': digest('work()'),
      'qsf-simd.wasm': digest('\0asm'),
      'index.js': 'none',
    });
    await install({ integrity: digestsIn() });
    for (const [name, body] of [
      ['worker.js', 'work()'],
      ['qsf-simd.wasm', '\0asm'],
    ] as const)
      expect(asked.find(({ url }) => url.endsWith(name))!.integrity).toBe(digest(body));
    stored.clear();
    // A script, as its type says, that is another one.
    served.set(`${ORIGIN}worker.js`, ['location = "/login"', 'text/javascript']);
    await expect(install({ version: '2', integrity: digestsIn('.') })).rejects.toThrow();
    expect(stored.size).toBe(0);
  });

  it('has digests checked that are given', async () => {
    await install({ integrity: { 'worker.js': digest('work()') } });
    expect(asked.find(({ url }) => url.endsWith('worker.js'))!.integrity).toBe(digest('work()'));
    stored.clear();
    await expect(install({ version: '2', integrity: { 'worker.js': digest('other()') } })).rejects.toThrow();
    expect(stored.size).toBe(0);
  });
});
