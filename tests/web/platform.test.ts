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

  it('cannot be had in shared and service workers, which is told with what to do', async () => {
    Reflect.deleteProperty(globalThis, 'Worker');
    await expect(startWorker(undefined)).rejects.toMatchObject({
      code: 'unsupported_host',
      message:
        "no worker can be started here, as in shared and service workers: import 'qsf/worker' there too, so that the engine runs in the same thread",
    });
  });

  it('cannot be had in a sandboxed frame, which is told with what it needs', async () => {
    vi.stubGlobal('origin', 'null');
    const why =
      "Failed to construct 'Worker': Script at 'https://page.test/worker.js' cannot be accessed from origin 'null'.";
    vi.stubGlobal('Worker', function refuse() {
      throw new DOMException(why, 'SecurityError');
    });
    for (const given of [undefined, 'https://page.test/worker.js']) {
      await expect(startWorker(given)).rejects.toMatchObject({
        code: 'unsupported_host',
        message: `the browser refused to start the worker: ${why} A sandboxed frame needs allow-same-origin`,
      });
    }
  });

  it('that fails while it starts is ended, with its own words', async () => {
    fate = { message: 'SyntaxError: no' };
    await expect(startWorker('https://page.test/worker.js')).rejects.toMatchObject({
      code: 'unsupported_host',
      message: 'the worker could not run: SyntaxError: no',
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
    await expect(startWorker('https://cdn.test/worker.js')).rejects.toThrow(
      /blob: and its origin in worker-src, and its origin in script-src and connect-src$/,
    );
  });
});

describe('the worker of a bundler', () => {
  /** What bundlers do: they write the address of their own file into the expression. */
  function bundledAt(address: string): void {
    vi.stubGlobal(
      'URL',
      class extends URL {
        constructor(url: string | URL, base?: string | URL) {
          super(url === './worker.js' ? address : url, base);
        }
      },
    );
  }

  /** A page whose policy refuses these as soon as a worker starts. */
  function policyRefuses(...directives: string[]): void {
    const page = Object.assign(new EventTarget(), { baseURI: 'https://page.test/demo/' });
    vi.stubGlobal('document', page);
    const Refused = class extends Fake {
      constructor(script: string | URL) {
        super(script);
        for (const effectiveDirective of directives)
          page.dispatchEvent(Object.assign(new Event('securitypolicyviolation'), { effectiveDirective }));
      }
    };
    vi.stubGlobal('Worker', Refused);
  }

  it('is imported from another origin by the name that it has there', async () => {
    bundledAt('https://cdn.test/assets/worker-1a2b.js');
    await startWorker(undefined);
    expect(scripts).toEqual([expect.stringMatching(/^blob:/)]);
    expect(await (await fetch(scripts[0]!)).text()).toBe('import "https://cdn.test/assets/worker-1a2b.js";');
    expect(Worker).toBe(Fake);
  });

  it.each([
    ['https://page.test/assets/worker-1a2b.js', /\/assets\/worker-1a2b\.js answers 404; put/],
    ['https://cdn.test/assets/worker-3c4d.js', /cdn\.test\/assets\/worker-3c4d\.js answers 404; put/],
  ])('that is not there is named as it is: %s', async (address, words) => {
    bundledAt(address);
    fate = { message: '' };
    vi.stubGlobal('fetch', answer(404, 'text/plain'));
    await expect(startWorker(undefined)).rejects.toThrow(words);
  });

  it.each([
    ['https://page.test/worker-1a2b.js', 'worker-1a2b.js cannot be reached: Failed to fetch'],
    [
      'https://cdn.test/worker-5e6f.js',
      'worker-5e6f.js cannot be reached, or its server does not let this origin read it: Failed to fetch',
    ],
  ])('that cannot be reached is no matter of a policy: %s', async (address, words) => {
    bundledAt(address);
    fate = { message: '' };
    policyRefuses();
    vi.stubGlobal('fetch', vi.fn().mockRejectedValue(new TypeError('Failed to fetch')));
    const { message } = (await startWorker(undefined).catch((error: unknown) => error)) as Error;
    expect(message).toContain(words);
    expect(message).not.toContain('Policy');
  });

  it.each([
    [
      ['worker-src'],
      'https://page.test/w.js',
      /Policy refuses https:\/\/page.test\/w\.js; it needs its origin in worker-src/,
    ],
    [
      ['worker-src', 'connect-src'],
      'https://cdn.test/w.js',
      /refuses https:\/\/cdn.test\/w\.js; it needs blob: and its origin in worker-src/,
    ],
    [['connect-src'], 'https://page.test/w.js', /w\.js did not load; see the console, and whether/],
  ])('that a policy refuses is told so by the refusal: %j', async (directives, address, words) => {
    bundledAt(address);
    fate = { message: '' };
    policyRefuses(...directives);
    const refuses = directives.includes('connect-src');
    vi.stubGlobal(
      'fetch',
      refuses ? vi.fn().mockRejectedValue(new TypeError('Failed to fetch')) : answer(200, 'text/javascript'),
    );
    await expect(startWorker(undefined)).rejects.toThrow(words);
  });
});

it('a policy that refuses to ask for the script is told, though browsers tell it later', async () => {
  fate = { message: '' };
  const page = Object.assign(new EventTarget(), { baseURI: 'https://page.test/' });
  vi.stubGlobal('document', page);
  vi.stubGlobal('fetch', async () => {
    const violation = Object.assign(new Event('securitypolicyviolation'), { effectiveDirective: 'connect-src' });
    setTimeout(() => page.dispatchEvent(violation));
    throw new TypeError('Failed to fetch');
  });
  await expect(startWorker('https://cdn.test/worker.js')).rejects.toThrow(/did not load; see the console/);
});

describe('addresses', () => {
  it('are the page’s', () => {
    expect(absolute('m.qsf#part')).toBe('https://page.test/demo/m.qsf');
    expect(ownFile('wasmUrl', '/wasm/')).toBe('https://page.test/wasm/');
    expect(() => absolute('file:///m.qsf')).toThrow(/not an http\(s\) address; give local files as a File or Blob/);
    expect(() => ownFile('workerUrl', 'http://[')).toThrow(/workerUrl is "http:\/\/\["; it must be an address/);
  });
});
