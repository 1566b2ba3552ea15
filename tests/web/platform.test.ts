// How a page starts its worker, and what it says when that fails.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { absolute, ownFile, startWorker } from '../../web/src/platform.js';

/** What happens to a worker once its script was asked for. */
let fate: { message: string } | 'starts' = 'starts';
const scripts: string[] = [];
let ended = 0;

class Fake extends EventTarget {
  constructor(script: string | URL) {
    super();
    scripts.push(String(script));
    const { fate: mine } = { fate };
    queueMicrotask(() => {
      if (mine === 'starts') this.dispatchEvent(new MessageEvent('message', { data: 'listening' }));
      else this.dispatchEvent(Object.assign(new Event('error'), mine));
    });
  }
  terminate(): void {
    ended++;
  }
}

const answer = (status: number, type: string) =>
  vi.fn(async () => new Response(null, { status, headers: { 'Content-Type': type } }));

beforeEach(() => {
  fate = 'starts';
  scripts.length = 0;
  ended = 0;
  vi.stubGlobal('Worker', Fake);
  vi.stubGlobal('location', new URL('https://page.test/demo/'));
});
afterEach(() => vi.unstubAllGlobals());

describe('the worker', () => {
  it('is the one beside the package unless another is given', async () => {
    await startWorker(undefined);
    await startWorker('https://page.test/own/worker.js');
    expect(scripts).toEqual([expect.stringMatching(/worker\.js$/), 'https://page.test/own/worker.js']);
  });

  it('of another origin is imported by a script of this one, once made', async () => {
    await startWorker('https://cdn.test/qsf/worker.js');
    await startWorker('https://cdn.test/qsf/worker.js');
    const [first = '', second] = scripts;
    expect(second).toBe(first);
    expect(first).toMatch(/^blob:/);
    expect(await (await fetch(first)).text()).toBe('import "https://cdn.test/qsf/worker.js";');
  });

  it('that fails while it starts is ended, with its own words', async () => {
    fate = { message: 'SyntaxError: no' };
    await expect(startWorker('https://page.test/worker.js')).rejects.toMatchObject({
      code: 'unsupported_host',
      message: 'The worker could not run: SyntaxError: no.',
    });
    expect(ended).toBe(1);
  });

  it.each([
    [404, 'text/plain', /worker\.js answers 404; put the package's worker\.js .* workerUrl/],
    [200, 'text/html', /worker\.js answers with text\/html, which is no script; put/],
    [200, 'text/javascript', /did not load; see the console, .* Content-Security-Policy has its origin in worker-src/],
  ])('whose script is not there is told with what its address answers (%i, %s)', async (status, type, words) => {
    fate = { message: '' };
    vi.stubGlobal('fetch', answer(status, type));
    await expect(startWorker('https://page.test/worker.js')).rejects.toMatchObject({
      code: 'unsupported_host',
      message: expect.stringMatching(words) as string,
    });
  });

  it('of another origin that does not load is told what a policy needs', async () => {
    fate = { message: '' };
    vi.stubGlobal('fetch', answer(200, 'text/javascript'));
    await expect(startWorker('https://cdn.test/worker.js')).rejects.toThrow(/blob: in worker-src, and its origin/);
  });
});

describe('addresses', () => {
  it('are the page’s', () => {
    expect(absolute('m.qsf#part')).toBe('https://page.test/demo/m.qsf');
    expect(ownFile('wasmUrl', '/wasm/')).toBe('https://page.test/wasm/');
    expect(() => absolute('file:///m.qsf')).toThrow(/not an http\(s\) address; give local files as a File or Blob/);
    expect(() => ownFile('workerUrl', 'http://[')).toThrow(/workerUrl is "http:\/\/\["; it must be an address/);
  });
});
