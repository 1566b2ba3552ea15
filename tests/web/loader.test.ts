// The opening of a source while the engine starts: which error is told, and that none is left over.
import { afterEach, expect, it, vi } from 'vitest';

import type { LoadRequest } from '../../web/src/contract.js';
import { QSFError } from '../../web/src/errors.js';
import { installFakeOpfs } from './fake-opfs.js';
import type { Engine } from '../../web/src/wasm/engine.js';
import { Loader } from '../../web/src/worker/loader.js';
import { until } from './fake-engine.js';

afterEach(() => vi.unstubAllGlobals());

/** Opens a source while `starting` settles. The server answers each request with `status`, or not at all. */
function create(starting: Promise<Engine>, status?: number): { asked: string[]; loader: Promise<Loader> } {
  installFakeOpfs(() => 1);
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: string, { signal }: RequestInit) => {
    asked.push(url);
    if (status !== undefined) return new Response(null, { status });
    return new Promise((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error)));
  });
  const request = { source: 'https://example.org/m.qsf', cache: false, network: { retries: 0 } } as LoadRequest;
  const none = () => undefined;
  const loader = Loader.create(request, starting, { progress: none, warning: none }, none as never, none as never);
  loader.catch(() => {});
  return { asked, loader };
}

const failed = new QSFError('out_of_memory', 'the browser refused memory');

it('asks the server before the engine has started', async () => {
  const { asked } = create(new Promise(() => {}));
  await until(() => asked.length === 1);
});

it('tells the error of an engine, and does not wait for the server', async () => {
  await expect(create(Promise.reject(failed)).loader).rejects.toBe(failed);
  const later = new Promise<Engine>((_, reject) => setTimeout(() => reject(failed), 20));
  await expect(create(later, 404).loader).rejects.toBe(failed);
});

it('tells the error of a server, after an engine that starts', async () => {
  const later = new Promise<Engine>((resolve) => setTimeout(() => resolve({} as Engine), 20));
  await expect(create(later, 404).loader).rejects.toMatchObject({ code: 'http_status', status: 404 });
});
