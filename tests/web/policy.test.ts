// A Content-Security-Policy that refuses to fetch is named, in pages and workers.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { evidenceOf } from '../../web/src/sources/refusal.js';
import { fetchModule } from '../../web/src/worker/worker-platform.js';

const MODEL = 'https://models.test/a.qsf';
const NEEDS = 'the Content-Security-Policy refuses it: connect-src needs https://models.test, and the origins';
let scope: EventTarget;

/** A fetch that a policy refuses: browsers tell it in a later task. */
async function refused(): Promise<never> {
  const violation = Object.assign(new Event('securitypolicyviolation'), { effectiveDirective: 'connect-src' });
  setTimeout(() => scope.dispatchEvent(violation));
  throw new TypeError('Failed to fetch');
}
const failing = () => Promise.reject(new TypeError('Failed to fetch'));

beforeEach(() => {
  scope = new EventTarget();
  vi.stubGlobal('addEventListener', scope.addEventListener.bind(scope));
  vi.stubGlobal('removeEventListener', scope.removeEventListener.bind(scope));
});
afterEach(() => vi.unstubAllGlobals());

const evidence = (fetch: () => Promise<Response>) => {
  const { signal } = new AbortController();
  const asked = { url: MODEL, origin: 'https://page.test', headers: undefined, credentials: undefined };
  return evidenceOf({ ...asked, fetch, signal }, false);
};

it('is the reason why a model cannot be read', async () => {
  expect(await evidence(refused)).toMatchObject({
    code: 'unsupported_host',
    why: expect.stringContaining(NEEDS) as string,
  });
  expect(await evidence(failing)).toBeUndefined();
});

it('is the reason why a module cannot be fetched', async () => {
  vi.stubGlobal('fetch', refused);
  const url = 'https://models.test/qsf-simd.wasm';
  await expect(fetchModule(url)).rejects.toMatchObject({ code: 'unsupported_host', url });
  await expect(fetchModule(url)).rejects.toThrow(NEEDS);
  vi.stubGlobal('fetch', failing);
  await expect(fetchModule(url)).rejects.toMatchObject({
    code: 'network_error',
    message: expect.stringMatching(/Failed/) as string,
  });
});
