import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Batch, Reply } from '../../web/src/contract.js';
import { QSF } from '../../web/src/page/qsf.js';
import type { GenerateOptions, Stats } from '../../web/src/types.js';
import { stays, until } from './fake-engine.js';
import { FakeWorker, failure, installFakeWorker, open, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://example.org/model.qsf';

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(removeFakeWorker);

const worker = () => FakeWorker.made[0]!;

async function collect(llm: QSF, options: GenerateOptions = {}, pieces: string[] = []): Promise<string[]> {
  for await (const piece of llm.generate('Once', options)) pieces.push(piece);
  return pieces;
}

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
      ...{ prompt: 'Once', stop: [], anew: true, maxTokens: 256, addBos: true, special: true, ignoreEos: false },
      ...{ logitsHash: false, logprobs: false, topLogprobs: 0, allLogits: false, logitsFrom: 0 },
      ...{ temperature: 0.7, topK: 40, topP: 0.9, minP: 0, typicalP: 1, topNSigma: -1, seed: 7 },
      ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, repeatLastN: -1 },
      ...{ dryMultiplier: 0, dryBase: 1.75, dryAllowedLength: 2, dryPenaltyLastN: -1 },
      ...{ xtcProbability: 0, xtcThreshold: 0.1, dynatempRange: 0, dynatempExponent: 1 },
      ...{ mirostat: 0, mirostatTau: 5, mirostatEta: 0.1 },
    });
    backend.will([]);
    await collect(llm, { stop: 'end', maxTokens: 3 });
    expect(backend.starts[1]).toMatchObject({ stop: ['end'], maxTokens: 3, allLogits: false });
    expect(backend.starts[1]!.seed).toBeGreaterThanOrEqual(0);
  });

  it.each<[GenerateOptions, string]>([
    [{ temperature: -1 }, 'temperature is -1; it must be 0 to 3.4e+38'],
    [{ maxTokens: 1.5 }, 'maxTokens is 1.5; it must be a whole number from 0 to 4294967295'],
    [{ seed: -1 }, 'seed is -1; it must be a whole number from 0 to 9007199254740991'],
    [{ topP: 0 }, 'topP is 0; it must be above 0 and at most 1'],
    [{ max_tokens: 5 } as GenerateOptions, 'generate() has no option "max_tokens"; did you mean maxTokens?'],
    [{ stop: 5 } as unknown as GenerateOptions, 'stop is 5; it must be a text or a list of at most 8 texts'],
    [
      { stop: ['a', 5] } as unknown as GenerateOptions,
      'stop is a list of 2; it must be a text or a list of at most 8 texts',
    ],
    [{ stop: Array<string>(9).fill('a') }, 'stop is a list of 9; it must be a text or a list of at most 8 texts'],
    [{ continue: 1 } as unknown as GenerateOptions, 'continue is 1; it must be true or false'],
  ])('refuses %o and is free for the next', async (options, sentence) => {
    await expect(collect(llm, options)).rejects.toMatchObject({ code: 'bad_argument', message: sentence });
    expect(backend.calls).toEqual([]);
    backend.will(['a']);
    expect(await collect(llm)).toEqual(['a']);
  });

  it('has no options that only hosts have', async () => {
    await expect(collect(llm, { allLogits: true } as GenerateOptions)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining('generate() has no option "allLogits"; known are addBos, continue,') as string,
    });
  });

  it.each([undefined, null, 7, { text: 'a' }])('refuses %o as a prompt', async (prompt) => {
    await expect(llm.generate(prompt as unknown as string).next()).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining('it must be text or token ids') as string,
    });
  });

  it('refuses no options at all with an error of its own', async () => {
    const stream = llm.generate('Once', null as never);
    const refused = {
      name: 'QSFError',
      code: 'bad_argument',
      message: 'the argument of generate() is null; it must be an object',
    };
    await expect(stream.next()).rejects.toMatchObject(refused);
    await expect(stream.result).rejects.toMatchObject(refused);
    backend.will(['a']);
    expect(await collect(llm)).toEqual(['a']);
  });

  it('tells what chat messages and lists of texts are to be instead', async () => {
    const messages = [{ role: 'user', content: 'Hello' }];
    for (const [prompt, what] of [
      [messages, 'objects, such as chat messages'],
      [['Hello'], 'texts'],
    ] as const) {
      await expect(llm.generate(prompt as never).next()).rejects.toMatchObject({
        ...{ name: 'QSFError', code: 'bad_argument' },
        message: expect.stringMatching(
          `^the prompt is a list of ${what}; it must be one text, .*chat\\(\\) answers messages$`,
        ) as string,
      });
    }
  });

  it('returns how it went, and promises it', async () => {
    backend.will(['a'], ['b']);
    const stream = llm.generate('Once');
    expect(await stream.next()).toEqual({ value: 'a', done: false });
    expect(await stream.next()).toEqual({ value: 'b', done: false });
    expect(await stream.next()).toEqual({ value: result, done: true });
    expect(await stream.result).toEqual(result);
  });

  it('left by its loop promises how far it came', async () => {
    backend.will(['a'], ['b']);
    backend.answers.stop = async () => ({ ok: true, value: { ...result, end: 'cancelled' } });
    const stream = llm.generate('Once');
    await stream.next();
    await stream.return({ ...result });
    expect(await stream.result).toMatchObject({ end: 'cancelled', tokens: [1, 2] });
  });

  it('left within its last pieces promises it too, and tells how many were shown', async () => {
    backend.will(['a'], ['b', 'c', 'd']);
    backend.answers.stop = async () => ({ ok: true, value: { ...result, end: 'cancelled' } });
    const stream = llm.generate('Once');
    for await (const piece of stream) if (piece === 'c') break;
    expect(await stream.result).toMatchObject({ end: 'cancelled' });
    expect(backend.shown).toEqual([3]);
  });

  it('that fails has its promise rejected too', async () => {
    backend.answers.start = async () => failure('context_full', 'Too long.');
    const stream = llm.generate('Once');
    await expect(stream.next()).rejects.toMatchObject({ code: 'context_full' });
    await expect(stream.result).rejects.toMatchObject({ code: 'context_full' });
  });

  it('passes the progress of the prompt on, and its exceptions to the page only', async () => {
    backend.batches = [
      { pieces: [], prompt: { done: 1, total: 3 } },
      { pieces: ['a'], prompt: { done: 3, total: 3 } },
      { pieces: [], result },
    ];
    const seen: unknown[] = [];
    const thrown: unknown[] = [];
    const later = setTimeout;
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms?: number) =>
      later(() => {
        try {
          work();
        } catch (error) {
          thrown.push(error);
        }
      }, ms)) as typeof setTimeout);
    const onPromptProgress = (progress: unknown) => {
      seen.push(progress);
      throw new Error('mine');
    };
    expect(await collect(llm, { onPromptProgress })).toEqual(['a']);
    expect(seen).toEqual([
      { done: 1, total: 3 },
      { done: 3, total: 3 },
    ]);
    await until(() => thrown.length === 2);
    timers.mockRestore();
    expect(thrown).toEqual([new Error('mine'), new Error('mine')]);
    expect(backend.starts[0]).toMatchObject({ promptProgress: true });
    await expect(collect(llm, { onPromptProgress: 5 as never })).rejects.toMatchObject({
      message: 'onPromptProgress is 5; it must be a function',
    });
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
    backend.answers.next = async () => ({ ok: true, value: { pieces: ['z'], result } });
    expect(await collect(llm)).toEqual(['z']);
  });

  it('begins while another runs, in its sequence or as the worker lets it', async () => {
    const next = open<Reply<Batch>>();
    backend.answers.next = () => next.promise;
    const both = [collect(llm), collect(llm, { sequence: 1, continue: true })];
    await until(() => backend.calls.filter((call) => call === 'next').length === 2);
    expect(backend.taken.map(({ sequence }) => sequence)).toEqual([undefined, 1]);
    expect(backend.starts.map(({ anew }) => anew)).toEqual([true, false]);
    next.resolve({ ok: true, value: { pieces: ['a'], result } });
    expect(await Promise.all(both)).toEqual([['a'], ['a']]);
    await expect(collect(llm, { sequence: 1.5 })).rejects.toMatchObject({
      message: 'sequence is 1.5; it must be a whole number from 0 to 63',
    });
  });

  it('settles its result also if the worker does not know it any more', async () => {
    backend.will(['a'], ['b']);
    backend.answers.stop = async () => ({ ok: true, value: undefined });
    const stream = llm.generate('Once');
    for await (const piece of stream) if (piece) break;
    await expect(stream.result).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('left by its loop stops the computation before the loop is over', async () => {
    const stop = open<Reply<undefined>>();
    backend.answers.stop = () => stop.promise;
    backend.will(['a', 'b'], ['c']);
    let left = false;
    const leaving = (async () => {
      for await (const piece of llm.generate('Once')) if (piece === 'a') break;
      left = true;
    })();
    await until(() => backend.calls.includes('stop'));
    await stays(() => !left);
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
      const stop = open<Reply<undefined>>();
      backend.answers.stop = () => stop.promise;
      const before = backend.calls.filter((call) => call === 'start').length;
      abort.abort(reason);
      await expect(generation).rejects.toBe(reason);
      await until(() => backend.calls.includes('stop'));
      backend.answers.start = async () => ({ ok: true, value: undefined });
      backend.answers.next = async () => ({ ok: true, value: { pieces: ['z'], result } });
      const again = collect(llm);
      await stays(() => backend.calls.filter((call) => call === 'start').length === before);
      stop.resolve({ ok: true, value: undefined });
      expect(await again).toEqual(['z']);
      expect(backend.calls.filter((call) => call === 'stop')).toHaveLength(1);
    }

    it('before it begins asks nothing of the worker', async () => {
      abort.abort(reason);
      await expect(collect(llm, { signal: abort.signal })).rejects.toBe(reason);
      expect(backend.calls).toEqual([]);
    });

    it('tells how many pieces were shown, if there is a generation', async () => {
      backend.answers.start = () => new Promise(() => undefined);
      const starting = collect(llm, { signal: abort.signal });
      await until(() => backend.calls.includes('start'));
      await expectAborted(starting);
      abort = new AbortController();
      backend.will(['a', 'b', 'c'], ['d']);
      backend.answers.next = async () => ({ ok: true, value: backend.batches.shift()! });
      const generation = (async () => {
        for await (const piece of llm.generate('Once', { signal: abort.signal }))
          if (piece === 'b') abort.abort(reason);
      })();
      await expect(generation).rejects.toBe(reason);
      await until(() => backend.shown.length === 2);
      expect(backend.shown).toEqual([undefined, 2]);
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
      await stays(() => !backend.calls.includes('stop'));
    });

    it('is told of by statistics only when it has ended', async () => {
      backend.answers.next = () => new Promise(() => undefined);
      const generation = collect(llm, { signal: abort.signal });
      await until(() => backend.calls.includes('next'));
      const stop = open<Reply<undefined>>();
      backend.answers.stop = () => stop.promise;
      abort.abort(reason);
      await expect(generation).rejects.toBe(reason);
      let stats: Stats | undefined;
      const asking = llm.stats().then((s) => (stats = s));
      await stays(() => stats === undefined);
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
      message: 'the worker could not run: out of memory',
    });
  });
});

describe('rewind()', () => {
  it('asks the worker, once what was aborted has ended', async () => {
    const llm = await QSF.load(URL_);
    await llm.rewind(3);
    expect(backend.rewound).toEqual([3]);
    const stop = open<Reply<undefined>>();
    backend.answers.stop = () => stop.promise;
    backend.answers.next = () => new Promise(() => undefined);
    const abort = new AbortController();
    const generation = collect(llm, { signal: abort.signal });
    await until(() => backend.calls.includes('next'));
    abort.abort(new Error('enough'));
    await expect(generation).rejects.toThrow('enough');
    const rewinding = llm.rewind(2);
    await stays(() => backend.rewound.length === 1);
    stop.resolve({ ok: true, value: undefined });
    await rewinding;
    expect(backend.rewound).toEqual([3, 2]);
    backend.answers.rewind = async () => failure('bad_argument', 'the sequence has 9 tokens, not 10');
    await expect(llm.rewind(10)).rejects.toMatchObject({ code: 'bad_argument' });
    backend.answers.rewind = async () => ({ ok: true, value: undefined });
    await llm.rewind(0);
  });

  it.each([-1, 1.5, undefined, '3'])('refuses %o', async (position) => {
    const llm = await QSF.load(URL_);
    await expect(llm.rewind(position as number)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining('it must be a whole number from 0') as string,
    });
    expect(backend.rewound).toEqual([]);
  });
});

describe('close()', () => {
  const cancelled = { name: 'QSFError', code: 'cancelled', message: 'the model was closed' };
  let llm: QSF;
  beforeEach(async () => {
    llm = await QSF.load(URL_);
    backend.answers.next = () => new Promise(() => undefined);
  });

  it('lets the worker end, once, and refuses what comes later', async () => {
    await Promise.all([llm.close(), llm.close()]);
    expect(backend.calls.filter((call) => call === 'close')).toHaveLength(1);
    expect(worker().terminated).toBe(true);
    const closed = { code: 'bad_state', message: 'the model was closed' };
    await expect(llm.stats()).rejects.toMatchObject(closed);
    await expect(llm.tokenize('a')).rejects.toMatchObject(closed);
    await expect(llm.detokenize([1])).rejects.toMatchObject(closed);
    await expect(llm.info()).rejects.toMatchObject(closed);
    await expect(collect(llm)).rejects.toMatchObject(closed);
  });

  it.each([
    ['answers', async (): Promise<Reply<void>> => ({ ok: true, value: undefined })],
    ['does not answer', () => new Promise<never>(() => undefined)],
  ])('while generating cancels, whether the worker %s', async (_, answer) => {
    backend.answers.close = answer;
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
    expect(await llm.detokenize([97, 98], { special: true })).toBe('ab!');
    expect(await llm.info()).toEqual({ name: 'Small' });
  });

  it.each<[string, (llm: QSF) => Promise<unknown>, string]>([
    ['tokenize(5)', (llm) => llm.tokenize(5 as never), 'the text is 5; it must be a string'],
    ['tokenize(text, null)', (llm) => llm.tokenize('a', null as never), 'the argument of tokenize() is null'],
    ['tokenize(text, strange)', (llm) => llm.tokenize('a', { spezial: true } as never), 'did you mean special?'],
    [
      'detokenize(null)',
      (llm) => llm.detokenize(null as never),
      'the tokens are null; they must be a list of token ids',
    ],
    [
      'detokenize({ special })',
      (llm) => llm.detokenize([1], { special: 1 } as never),
      'special is 1; it must be true or false',
    ],
    ['detokenize(text)', (llm) => llm.detokenize('12' as never), 'the tokens are a string; they must be'],
  ])('of another kind are refused: %s', async (_, ask, sentence) => {
    const llm = await QSF.load(URL_);
    await expect(ask(llm)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    await expect(llm.detokenize([{}] as never)).rejects.toMatchObject({
      ...{ code: 'bad_token', message: 'an object is not a token id' },
    });
  });
});
