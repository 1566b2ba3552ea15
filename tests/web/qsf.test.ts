import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Batch, Reply } from '../../web/src/contract.js';
import { QSF } from '../../web/src/qsf.js';
import type { GenerateOptions, LoadOptions, Progress, Stats } from '../../web/src/types.js';
import { pause, until } from './fake-engine.js';
import { FakeWorker, installFakeWorker, open } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://example.org/model.qsf';
const MiB = 1024 * 1024;

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(() => {
  for (const worker of FakeWorker.made) worker.terminate();
  vi.unstubAllGlobals();
});

const worker = () => FakeWorker.made[0]!;
const failure = (code: string, sentence: string) =>
  ({ ok: false, error: { code, sentence } }) as Extract<Reply<never>, { ok: false }>;

async function collect(llm: QSF, options: GenerateOptions = {}, pieces: string[] = []): Promise<string[]> {
  for await (const piece of llm.generate('Once', options)) pieces.push(piece);
  return pieces;
}

describe('load()', () => {
  it('asks with defaults for what is not given, and tells how far it is', async () => {
    const seen: Progress[] = [];
    backend.answers.load = async (report) => {
      report({ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 });
      await pause();
      return { ok: true, value: undefined };
    };
    await QSF.load('model.qsf', { onProgress: (p) => seen.push(p) });
    expect(backend.loads).toEqual([
      {
        source: 'https://page.test/demo/model.qsf',
        memory: 256 * MiB,
        open: {
          maxSeqLen: 0,
          sequences: 1,
          chunk: 0,
          ringSlots: 0,
          streamAll: false,
          recheck: false,
          allLogits: false,
        },
        kv: undefined,
        cache: true,
        background: false,
        variant: undefined,
        threads: undefined,
        network: {},
      },
    ]);
    expect(seen).toEqual([{ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 }]);
  });

  it('passes on what is given, and nothing that the package does not offer', async () => {
    const given = { memory: MiB + 1, maxSeqLen: 64, streamAll: true, kv: '4bit', background: true, cache: false };
    await QSF.load(URL_, { ...given, threads: 2, variant: 'simd', sequences: 3 } as LoadOptions);
    expect(backend.loads[0]).toMatchObject({
      ...{ memory: MiB + 65_536, open: { maxSeqLen: 64, streamAll: true, sequences: 1 } },
      ...{ kv: '4bit', background: true, cache: false, threads: 2, variant: 'simd' },
    });
  });

  it.each<[object, string]>([
    [{ memory: 0 }, 'memory'],
    [{ memory: 5 * 1024 * MiB }, 'memory'],
    [{ memory: NaN }, 'memory'],
    [{ maxSeqLen: -1 }, 'maxSeqLen is -1; it must be a whole number from 0 to 16777216'],
    [{ maxSeqLen: 1.5 }, 'maxSeqLen is 1.5; it must be a whole number from 0 to 16777216'],
    [{ streamAll: 1 }, 'streamAll is 1; it must be true or false'],
    [{ kv: 'q8' }, 'kv is "q8"; it must be one of f32, f16, 8bit, 4bit, 2bit'],
    [{ variant: 'fast' }, 'variant is "fast"; it must be one of relaxed, simd'],
  ])('refuses %o without a worker', async (options, sentence) => {
    await expect(QSF.load(URL_, options)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(sentence) as string,
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each(['file:///model.qsf', 'http://[', 'blob:x'])('refuses the address %s', async (address) => {
    await expect(QSF.load(address)).rejects.toMatchObject({ code: 'bad_argument' });
    expect(FakeWorker.made).toEqual([]);
  });

  it("that fails rejects with the worker's error and ends it", async () => {
    backend.answers.load = async () => failure('bad_magic', 'It begins with "GGUF".');
    const loading = QSF.load(URL_);
    await expect(loading).rejects.toMatchObject({
      name: 'QSFError',
      code: 'bad_magic',
      message: 'It begins with "GGUF".',
    });
    await until(() => worker().terminated);
  });

  it('whose worker does not run says so', async () => {
    backend.answers.load = () => new Promise(() => undefined);
    const loading = QSF.load(URL_);
    await until(() => backend.calls.includes('load'));
    worker().break('');
    await expect(loading).rejects.toMatchObject({ code: 'unsupported_host' });
    await until(() => worker().terminated);
  });

  it('aborted before it begins makes no worker', async () => {
    const reason = new Error('no more');
    await expect(QSF.load(URL_, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(FakeWorker.made).toEqual([]);
  });

  it('aborted on its way rejects at once with the reason and ends the worker', async () => {
    backend.answers.load = () => new Promise(() => undefined);
    backend.answers.close = () => new Promise(() => undefined);
    const abort = new AbortController();
    const loading = QSF.load(URL_, { signal: abort.signal });
    await until(() => backend.calls.includes('load'));
    const reason = new Error('no more');
    abort.abort(reason);
    await expect(loading).rejects.toBe(reason);
    await until(() => worker().terminated);
  });

  it('is not aborted by a signal that comes too late', async () => {
    const abort = new AbortController();
    const forget = vi.spyOn(abort.signal, 'removeEventListener');
    const llm = await QSF.load(URL_, { signal: abort.signal });
    expect(forget).toHaveBeenCalledOnce();
    abort.abort();
    await pause(10);
    expect(worker().terminated).toBe(false);
    expect(await llm.stats()).toEqual({ position: 5 });
  });
});

describe('generate()', () => {
  let llm: QSF;
  beforeEach(async () => {
    llm = await QSF.load(URL_);
    backend.calls.length = 0;
  });

  it('gives every piece in order and can be used again', async () => {
    for (const last of ['c', 'd']) {
      backend.will(['a', 'b'], [], [last]);
      expect(await collect(llm)).toEqual(['a', 'b', last]);
    }
    expect(backend.calls).not.toContain('stop');
  });

  it('asks with defaults for what is not given', async () => {
    backend.will([]);
    await collect(llm, { seed: 7 });
    expect(backend.starts[0]).toEqual({
      ...{ prompt: 'Once', stop: [], continue: false, maxTokens: 256, addBos: true, special: true, ignoreEos: false },
      ...{ logitsHash: false, allLogits: false, logitsFrom: 0 },
      ...{ temperature: 0.7, topK: 40, topP: 0.9, repetitionPenalty: 1, seed: 7 },
    });
    backend.will([]);
    await collect(llm, { stop: 'end', maxTokens: 3, allLogits: true } as GenerateOptions);
    expect(backend.starts[1]).toMatchObject({ stop: ['end'], maxTokens: 3, allLogits: false });
    expect(backend.starts[1]!.seed).toBeGreaterThanOrEqual(0);
  });

  it.each<[GenerateOptions, string]>([
    [{ temperature: -1 }, 'temperature is -1; it must be 0 to 3.4e+38'],
    [{ maxTokens: 1.5 }, 'maxTokens is 1.5; it must be a whole number from 0 to 4294967295'],
    [{ seed: -1 }, 'seed is -1; it must be a whole number from 0 to 9007199254740991'],
    [{ topP: 0 }, 'topP is 0; it must be above 0 and at most 1'],
  ])('refuses %o and is free for the next', async (options, sentence) => {
    await expect(collect(llm, options)).rejects.toMatchObject({ code: 'bad_argument', message: sentence });
    expect(backend.calls).toEqual([]);
    backend.will(['a']);
    expect(await collect(llm)).toEqual(['a']);
  });

  it('refuses what is no token id', async () => {
    const tokens = llm.generate([1, -1]);
    await expect(tokens.next()).rejects.toMatchObject({ code: 'bad_token' });
    await expect(llm.detokenize([1.5])).rejects.toMatchObject({ code: 'bad_token' });
  });

  it("rejects with the worker's error, at the start and on the way, and is free for the next", async () => {
    backend.answers.start = async () => failure('context_full', 'Too long.');
    await expect(collect(llm)).rejects.toMatchObject({ code: 'context_full', message: 'Too long.' });
    backend.answers.start = async () => ({ ok: true, value: undefined });
    backend.will(['a'], ['b']);
    const pieces: string[] = [];
    backend.answers.next = async () =>
      backend.batches.length > 1 ? { ok: true, value: backend.batches.shift()! } : failure('io_error', 'Gone.');
    await expect(collect(llm, {}, pieces)).rejects.toMatchObject({ code: 'io_error', message: 'Gone.' });
    expect(pieces).toEqual(['a']);
    backend.answers.next = async () => ({ ok: true, value: { pieces: ['z'], done: true } });
    expect(await collect(llm)).toEqual(['z']);
  });

  it('is one at a time', async () => {
    const next = open<Reply<Batch>>();
    backend.answers.next = () => next.promise;
    const first = collect(llm);
    await until(() => backend.calls.includes('next'));
    await expect(collect(llm)).rejects.toMatchObject({ code: 'bad_state' });
    next.resolve({ ok: true, value: { pieces: ['a'], done: true } });
    expect(await first).toEqual(['a']);
  });

  it('left by its loop stops the computation before the loop is over', async () => {
    const stop = open<Reply<void>>();
    backend.answers.stop = () => stop.promise;
    backend.will(['a', 'b'], ['c']);
    let left = false;
    const leaving = (async () => {
      for await (const piece of llm.generate('Once')) if (piece === 'a') break;
      left = true;
    })();
    await until(() => backend.calls.includes('stop'));
    await pause(10);
    expect(left).toBe(false);
    stop.resolve({ ok: true, value: undefined });
    await leaving;
    backend.will(['z']);
    expect(await collect(llm)).toEqual(['z']);
  });

  describe('aborted', () => {
    const reason = new Error('no more');
    let abort: AbortController;
    beforeEach(() => {
      abort = new AbortController();
    });

    /** Rejects with the reason at once; the worker is told once; the next generation waits until it has stopped. */
    async function expectAborted(generation: Promise<unknown>): Promise<void> {
      const stop = open<Reply<void>>();
      backend.answers.stop = () => stop.promise;
      const before = backend.calls.filter((call) => call === 'start').length;
      abort.abort(reason);
      await expect(generation).rejects.toBe(reason);
      await until(() => backend.calls.includes('stop'));
      backend.answers.start = async () => ({ ok: true, value: undefined });
      backend.answers.next = async () => ({ ok: true, value: { pieces: ['z'], done: true } });
      const again = collect(llm);
      await pause(10);
      expect(backend.calls.filter((call) => call === 'start')).toHaveLength(before);
      stop.resolve({ ok: true, value: undefined });
      expect(await again).toEqual(['z']);
      expect(backend.calls.filter((call) => call === 'stop')).toHaveLength(1);
    }

    it('before it begins asks nothing of the worker', async () => {
      abort.abort(reason);
      await expect(collect(llm, { signal: abort.signal })).rejects.toBe(reason);
      expect(backend.calls).toEqual([]);
    });

    it('while it starts', async () => {
      backend.answers.start = () => new Promise(() => undefined);
      const generation = collect(llm, { signal: abort.signal });
      await until(() => backend.calls.includes('start'));
      await expectAborted(generation);
    });

    it('while it waits for a piece', async () => {
      backend.answers.next = () => new Promise(() => undefined);
      const generation = collect(llm, { signal: abort.signal });
      await until(() => backend.calls.includes('next'));
      await expectAborted(generation);
    });

    it('between two pieces of one batch gives no more of them', async () => {
      backend.will(['a', 'b', 'c'], ['d']);
      const pieces: string[] = [];
      const generation = (async () => {
        for await (const piece of llm.generate('Once', { signal: abort.signal })) {
          pieces.push(piece);
          await until(() => abort.signal.aborted);
        }
      })();
      await until(() => pieces.length > 0);
      await expectAborted(generation);
      expect(pieces).toEqual(['a']);
    });

    it('after the end changes nothing', async () => {
      backend.will(['a']);
      expect(await collect(llm, { signal: abort.signal })).toEqual(['a']);
      abort.abort(reason);
      await pause(10);
      expect(backend.calls).not.toContain('stop');
    });

    it('is told of by statistics only when it has ended', async () => {
      backend.answers.next = () => new Promise(() => undefined);
      const generation = collect(llm, { signal: abort.signal });
      await until(() => backend.calls.includes('next'));
      const stop = open<Reply<void>>();
      backend.answers.stop = () => stop.promise;
      abort.abort(reason);
      await expect(generation).rejects.toBe(reason);
      let stats: Stats | undefined;
      const asking = llm.stats().then((s) => (stats = s));
      await pause(10);
      expect(stats).toBeUndefined();
      stop.resolve({ ok: true, value: undefined });
      await asking;
      expect(stats).toEqual({ position: 5 });
    });
  });

  it('ends when the worker breaks', async () => {
    backend.answers.next = () => new Promise(() => undefined);
    const generation = collect(llm);
    await until(() => backend.calls.includes('next'));
    worker().break('out of memory');
    await expect(generation).rejects.toMatchObject({
      code: 'unsupported_host',
      message: 'The worker could not run: out of memory.',
    });
  });
});

describe('close()', () => {
  const cancelled = { name: 'QSFError', code: 'cancelled', message: 'The model was closed.' };
  let llm: QSF;
  beforeEach(async () => {
    llm = await QSF.load(URL_);
    backend.answers.next = () => new Promise(() => undefined);
  });

  it('lets the worker end, once, and refuses what comes later', async () => {
    await Promise.all([llm.close(), llm.close()]);
    expect(backend.calls.filter((call) => call === 'close')).toHaveLength(1);
    expect(worker().terminated).toBe(true);
    const closed = { code: 'bad_state', message: 'The model was closed.' };
    await expect(llm.stats()).rejects.toMatchObject(closed);
    await expect(llm.tokenize('a')).rejects.toMatchObject(closed);
    await expect(llm.detokenize([1])).rejects.toMatchObject(closed);
    await expect(collect(llm)).rejects.toMatchObject(closed);
  });

  it.each([
    ['answers', async (): Promise<Reply<void>> => ({ ok: true, value: undefined })],
    ['does not answer', () => new Promise<never>(() => undefined)],
  ])('while generating cancels, whether the worker %s', async (_, answer) => {
    backend.answers.close = answer;
    backend.answers.stop = answer;
    const generation = collect(llm);
    await until(() => backend.calls.includes('next'));
    const closing = llm.close();
    await expect(generation).rejects.toMatchObject(cancelled);
    await closing;
    expect(worker().terminated).toBe(true);
  });

  it('between two batches cancels the loop', async () => {
    backend.answers.next = async () => ({ ok: true, value: { pieces: ['a'], done: false } });
    const generation = (async () => {
      for await (const piece of llm.generate('Once')) if (piece) await llm.close();
    })();
    await expect(generation).rejects.toMatchObject(cancelled);
  });

  it('while a left loop waits for its stop lets it go', async () => {
    backend.answers.stop = () => new Promise(() => undefined);
    backend.answers.next = async () => ({ ok: true, value: { pieces: ['a', 'b'], done: false } });
    const leaving = (async () => {
      for await (const piece of llm.generate('Once')) if (piece) break;
    })();
    await until(() => backend.calls.includes('stop'));
    await llm.close();
    await leaving;
  });

  it('cancels what else is asked', async () => {
    backend.answers.stats = () => new Promise(() => undefined);
    const stats = llm.stats();
    await until(() => backend.calls.includes('stats'));
    const closing = llm.close();
    await expect(stats).rejects.toMatchObject(cancelled);
    await closing;
  });
});

describe('text and tokens', () => {
  it('cross both ways', async () => {
    const llm = await QSF.load(URL_);
    expect(await llm.tokenize('ab')).toEqual([97, 98]);
    expect(await llm.detokenize([97, 98])).toBe('ab');
  });
});
