// Where the worker's WebAssembly module comes from, and what is said when it is not there.
import { afterEach, describe, expect, it, vi } from 'vitest';

import { fetchModule as fetchInNode } from '../../web/src/node/worker-platform.js';
import { fetchModule, ownScript, tellUncaught } from '../../web/src/worker/worker-platform.js';

const ADDRESS = 'https://page.test/qsf-simd.wasm';
/** The shortest module there is. */
const EMPTY = Uint8Array.from([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);

const answer = (body: BodyInit | null, status: number, type: string) =>
  vi.stubGlobal('fetch', async () => new Response(body, { status, headers: { 'Content-Type': type } }));

afterEach(() => vi.unstubAllGlobals());

describe('the module', () => {
  it.each(['application/wasm', 'application/octet-stream'])('is compiled, sent as %s', async (type) => {
    answer(EMPTY, 200, type);
    expect(await fetchModule(ADDRESS)).toBeInstanceOf(WebAssembly.Module);
  });

  it('that is not there is told with its address, and what to do', async () => {
    answer(null, 404, 'text/html');
    await expect(fetchModule(ADDRESS)).rejects.toMatchObject({
      code: 'http_status',
      url: ADDRESS,
      status: 404,
      message: expect.stringMatching(/answered 404; put the package's \.wasm files there, or .* wasmUrl/) as string,
    });
  });

  it('in whose place a server answers with a page is told apart', async () => {
    answer('<!doctype html>', 200, 'text/html');
    await expect(fetchModule(ADDRESS)).rejects.toMatchObject({
      code: 'unsupported_host',
      message: expect.stringMatching(/answers with text\/html, is not the package's WebAssembly module/) as string,
    });
  });

  it('that cannot be fetched ends in network_error', async () => {
    vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('refused')));
    await expect(fetchModule(ADDRESS)).rejects.toMatchObject({ code: 'network_error', url: ADDRESS });
  });

  it('is a file in Node', async () => {
    await expect(fetchInNode('file:///none/qsf-simd.wasm')).rejects.toMatchObject({ code: 'unsupported_host' });
  });
});

describe('the worker’s own script', () => {
  it('is started again as what it is', () => {
    vi.stubGlobal('location', { href: ADDRESS });
    vi.stubGlobal('importScripts', () => undefined);
    expect(ownScript()).toEqual({ address: ADDRESS, type: 'classic' });
    vi.stubGlobal('importScripts', () => {
      throw new TypeError('Module scripts have none.');
    });
    expect(ownScript()).toEqual({ address: ADDRESS, type: 'module' });
  });
});

describe('workers that are started', () => {
  it('end by themselves where locks may not be used', async () => {
    const refused = async () => Promise.reject(new DOMException('Access is denied.', 'SecurityError'));
    const locks = { request: vi.fn(refused) };
    vi.stubGlobal('navigator', { locks });
    vi.resetModules();
    const { afterOthers, beforeOthers, endWithStarter, nameOther } =
      await import('../../web/src/worker/worker-platform.js');
    await beforeOthers();
    endWithStarter(nameOther('something'));
    await afterOthers();
    expect(locks.request).toHaveBeenCalledTimes(3);
  });

  it('are waited for a moment longer than their locks, also if they ended before', async () => {
    const request = async (_: string, held: () => unknown) => Promise.resolve(held());
    vi.stubGlobal('navigator', { locks: { request } });
    vi.resetModules();
    vi.useFakeTimers();
    try {
      const { afterOthers, nameOther } = await import('../../web/src/worker/worker-platform.js');
      await afterOthers();
      nameOther('something');
      const ended = vi.fn();
      void afterOthers().then(ended);
      await vi.advanceTimersByTimeAsync(49);
      expect(ended).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(ended).toHaveBeenCalledOnce();
    } finally {
      vi.useRealTimers();
    }
  });
});

it('a promise’s error that nobody catches is told like a callback’s', () => {
  const told: unknown[] = [];
  const scope = new EventTarget();
  vi.stubGlobal('addEventListener', scope.addEventListener.bind(scope));
  vi.stubGlobal('reportError', (reason: unknown) => told.push(reason));
  tellUncaught();
  const reason = new RangeError('Array buffer allocation failed');
  scope.dispatchEvent(Object.assign(new Event('unhandledrejection'), { reason }));
  expect(told).toEqual([reason]);
});
