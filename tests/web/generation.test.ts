import './fair-channel.js';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { AnswerPiece, End } from '../../web/src/boundary.gen.js';
import type { GenerateRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { Generation } from '../../web/src/worker/generation.js';
import { Passes } from '../../web/src/worker/passes.js';
import { Runner } from '../../web/src/worker/runner.js';
import { turnIn } from './call.js';
import { FakeSource, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';

const request: GenerateRequest = {
  ...checkOptions(samplerOptions, { temperature: 0, topK: 0, topP: 1, seed: 42 }),
  ...checkOptions(promptOptions, { maxTokens: 5 }),
  ...{ prompt: 'Once', stop: [], anew: true },
};
/** As many pieces as may wait for the page. */
const AHEAD = 16;

let instance: FakeSession;
let source: FakeSource;
let runner: Runner;
let passes: Passes;

beforeEach(() => {
  const fake = fakeEngine();
  instance = fake.instance;
  source = new FakeSource();
  runner = new Runner(fake.engine, source);
  passes = new Passes(runner);
});

afterEach(() => {
  vi.restoreAllMocks();
});

const begin = (options: Partial<GenerateRequest> = {}, turn = turnIn()) =>
  new Generation(runner.engine, passes, turn, { ...request, ...options });

/** Takes pieces until the end. */
async function drain(generation: Generation): Promise<string[]> {
  const pieces: string[] = [];
  for (;;) {
    const batch = await generation.next();
    pieces.push(...batch.pieces);
    if (batch.result) return pieces;
  }
}

describe('a generation', () => {
  it('that may have one call ends after it, with the tokens and the sequence up to there', async () => {
    const call = (name: string): AnswerPiece[] => [
      { kind: 'call', text: name },
      { kind: 'arguments', text: '{}' },
    ];
    const parts: AnswerPiece[][] = [[{ kind: 'text', text: 'So' }], [...call('a'), ...call('b')], call('c')];
    instance.script = { piece: (n) => `<${String(n)}>`, parts: (n) => parts[n] ?? [], end: { after: 9, why: 'eos' } };
    const begun = begin({ prompt: { template: '', values: '{}', more: '' }, oneCall: true, maxTokens: 20 });
    const seen: AnswerPiece[] = [];
    for (;;) {
      const { parts: some = [], result } = await begun.next();
      seen.push(...some.flat());
      if (!result) continue;
      expect(result).toMatchObject({ end: 'stop', tokens: [100, 101] });
      break;
    }
    expect(seen).toEqual([...parts[0]!, ...call('a')]);
    expect(instance.calls.slice(-2)).toEqual(['stop 0', `rewind ${String(begun.stats().position)} 0`]);
    expect(begun.stats()).toMatchObject({ running: false, end: 'stop' });
  });

  it('reports the progress of its prompt if it is asked for, ten times a second at most', async () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    instance.script = { work: 1000, fed: (n) => Math.floor(n / 200), piece: (n) => `<${String(n)}>` };
    const steps = instance.step.bind(instance);
    vi.spyOn(instance, 'step').mockImplementation(() => {
      now++; // a millisecond
      return steps();
    });
    const reports: unknown[] = [];
    const generation = begin({ promptProgress: true, maxTokens: 2 });
    for (;;) {
      const { prompt, result } = await generation.next();
      if (prompt) reports.push(prompt);
      if (result) break;
    }
    expect(reports.length).toBeGreaterThan(2);
    expect(reports.length).toBeLessThanOrEqual(11);
    expect(reports.at(-1)).toEqual({ done: 7, total: 7 });
    const done = (reports as { done: number; total: number }[]).map((report) => report.done);
    expect(done).toEqual([...done].sort((a, b) => a - b));
    expect(done.slice(0, -1).every((n) => n < 7)).toBe(true);
    expect(generation.stats().tokens).toHaveLength(2);
  });

  it('counts only the tokens of the prompt that it computes', async () => {
    await drain(begin());
    instance.script = { work: 1, fed: () => 3 };
    const generation = begin({ promptProgress: true, anew: false });
    expect(await generation.next()).toMatchObject({ pieces: [], prompt: { done: 3, total: 7 } });
    generation.stop();
  });

  it('reports no progress otherwise', async () => {
    instance.script = { work: 5, fed: () => 3 };
    const generation = begin();
    for (;;) {
      const batch = await generation.next();
      expect(batch).not.toHaveProperty('prompt');
      if (batch.result) break;
    }
  });

  it('hands every piece over and tells of itself', async () => {
    const generation = begin({ logitsHash: true, stop: ['end', '…'] });
    expect(instance).toMatchObject({ text: 'Once', stops: ['end', '…'] });
    expect(generation.stats()).toEqual({
      promptTokens: 7,
      reusedTokens: 0,
      tokens: [],
      position: 7,
      sequence: 0,
      running: true,
      seed: 42,
    });
    expect(await drain(generation)).toEqual(['<0>', '<1>', '<2>', '<3>', '<4>']);
    const stats = generation.stats();
    expect(stats).toMatchObject({ promptTokens: 7, tokens: [100, 101, 102, 103, 104], running: false, end: 'length' });
    expect(stats.logitsHash).toBe('10g175 5');
    expect(stats.firstTokenMs).toBeGreaterThanOrEqual(0);
    expect(stats.tokensPerSecond).toBeGreaterThan(0);
  });

  it('has the log-probabilities of its tokens at its end', async () => {
    instance.script = { piece: (n) => (n === 1 ? 'é' : 'b') };
    const generation = begin({ logprobs: true, topLogprobs: 1, maxTokens: 2 });
    expect(generation.stats()).not.toHaveProperty('logprobs');
    await drain(generation);
    const likely = { id: 100, text: 'b', bytes: [98] };
    expect(generation.stats().logprobs).toEqual([
      { id: 100, text: 'b', bytes: [98], logprob: -1, top: [{ ...likely, logprob: -1.5 }] },
      { id: 101, text: 'é', bytes: [0xc3, 0xa9], logprob: -2, top: [{ ...likely, logprob: -2.5 }] },
    ]);
  });

  it('has those of the tokens that were shown, after a stop', async () => {
    instance.script = { end: { after: 4, why: 'stop' }, piece: (n) => (n < 2 ? 'a' : '') };
    const generation = begin({ logprobs: true, topLogprobs: 0, stop: ['end'] });
    await drain(generation);
    const { tokens, logprobs } = generation.stats();
    expect(logprobs?.map(({ id }) => id)).toEqual(tokens);
  });

  it('has the guesses of the engine at its end', async () => {
    instance.guesses = { made: 9, right: 6 };
    const generation = begin();
    expect(generation.stats()).not.toHaveProperty('guesses');
    await drain(generation);
    expect(generation.stats().guesses).toEqual({ made: 9, right: 6 });
    instance.guesses = { made: 0, right: 0 };
    const unguessed = begin();
    await drain(unguessed);
    expect(unguessed.stats()).not.toHaveProperty('guesses');
  });

  it('hashes no logits unasked, and hands over no empty piece', async () => {
    instance.script = { piece: (n) => (n % 2 ? `${String(n)} ` : '') };
    const generation = begin();
    expect(await drain(generation)).toEqual(['1 ', '3 ']);
    expect(generation.stats()).not.toHaveProperty('logitsHash');
    expect(generation.stats().tokens).toHaveLength(5);
  });

  it('begins a sequence anew unless it goes on', async () => {
    await drain(begin());
    expect(instance.options).toMatchObject({ anew: true });
    await drain(begin({ anew: false }));
    expect(instance.options).toMatchObject({ anew: false });
    expect(instance.calls).toEqual(['start 0', 'start 0']);
  });

  it('takes token ids as they are', async () => {
    const generation = begin({ prompt: Uint32Array.of(1, 2, 3) });
    expect(instance).toMatchObject({ text: '', ids: [1, 2, 3] });
    await drain(generation);
  });

  it.each<End>(['eos', 'stop', 'length', 'context'])('ends by %s when the engine says so', async (why) => {
    instance.script = { end: { after: 2, why } };
    const generation = begin();
    expect(await drain(generation)).toEqual(['<0>', '<1>']);
    expect(generation.stats()).toMatchObject({ end: why, running: false });
    // And goes on saying so.
    const again = await generation.next();
    expect(again).toMatchObject({ pieces: [], result: { end: why, promptTokens: 7, tokens: [100, 101], position: 9 } });
    expect(instance.length).toBe(9);
  });

  it('is not begun when the engine refuses it', () => {
    instance.refuse.start = { code: 'context_full', sentence: 'the prompt is too long.' };
    expect(() => begin()).toThrow(
      expect.objectContaining({ code: 'context_full', message: 'the prompt is too long.' }) as Error,
    );
    expect(() => begin({ stop: ['a\0b'] })).toThrow(expect.objectContaining({ code: 'bad_argument' }) as Error);
    expect(() => begin({ prompt: 'x'.repeat(80_000) })).toThrow(
      expect.objectContaining({ code: 'bad_argument' }) as Error,
    );
  });
});

describe('a page that takes its time', () => {
  it('holds the computation back and loses nothing', async () => {
    const generation = begin({ maxTokens: 60 });
    await until(() => generation.stats().tokens.length === AHEAD);
    const { stepped } = instance;
    await stays(() => instance.stepped === stepped);
    const first = await generation.next();
    expect(first.pieces).toHaveLength(AHEAD);
    await until(() => generation.stats().tokens.length === 2 * AHEAD);
    const pieces = [...first.pieces, ...(await drain(generation))];
    expect(pieces).toEqual(Array.from({ length: 60 }, (_, n) => `<${String(n)}>`));
  });

  it('does not make the engine look slow', async () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    instance.script = {
      piece: (n) => {
        now += 10;
        return String(n);
      },
    };
    const generation = begin({ maxTokens: 40 });
    await until(() => generation.stats().tokens.length === AHEAD);
    now += 5000;
    await drain(generation);
    expect(generation.stats()).toMatchObject({ firstTokenMs: 0 });
    expect(generation.stats().tokensPerSecond).toBeCloseTo(100);
  });
});

describe('stop()', () => {
  /** What holds for a generation that was stopped, wherever it was. */
  async function expectStopped(generation: Generation): Promise<void> {
    expect(generation.stats()).toMatchObject({ end: 'cancelled', running: false });
    await passes.passed();
    const { stepped } = instance;
    await stays(() => instance.stepped === stepped);
    const { position, tokens } = generation.stats();
    expect(instance.calls.slice(-2)).toEqual(['stop 0', `rewind ${String(position)} 0`]);
    expect(position).toBe(7 + tokens.length);
    await drain(generation);
    // The next one is not disturbed.
    instance.script = {};
    source.mode = 'now';
    source.release();
    expect(await drain(begin())).toHaveLength(5);
  }

  it('before the first step', async () => {
    const generation = begin();
    generation.stop();
    expect(generation.stats().tokens.length).toBeLessThan(2);
    await expectStopped(generation);
  });

  it('while it computes', async () => {
    instance.script = { work: Infinity };
    const generation = begin();
    await until(() => instance.stepped > 20);
    generation.stop();
    await expectStopped(generation);
  });

  it('while it waits for bytes', async () => {
    instance.script = { reads: (n) => n === 1 };
    source.mode = 'held';
    const generation = begin();
    await until(() => source.held === 1);
    expect((await generation.next()).pieces).toEqual(['<0>']);
    generation.stop();
    expect(generation.stats().tokens).toEqual([100]);
    source.release();
    await expectStopped(generation);
  });

  it('while the page holds it back', async () => {
    const generation = begin({ maxTokens: 100 });
    await until(() => generation.stats().tokens.length === AHEAD);
    generation.stop();
    expect(generation.stats().tokens).toEqual([]);
    await expectStopped(generation);
  });

  it('ends a next() that waits', async () => {
    instance.script = { work: Infinity };
    const generation = begin();
    const next = generation.next();
    await until(() => instance.stepped > 20);
    generation.stop();
    expect(await next).toMatchObject({ pieces: [], result: { end: 'cancelled' } });
  });

  it('after the end changes nothing', async () => {
    const generation = begin();
    await drain(generation);
    generation.stop();
    expect(generation.stats().end).toBe('length');
    expect(instance.calls).not.toContain('stop 0');
  });
});

describe('the sequence of a generation that was stopped', () => {
  it('ends with the pieces that were shown, and not with those that were taken or wait', async () => {
    const generation = begin({ maxTokens: 60 });
    await until(() => generation.stats().tokens.length === AHEAD);
    expect((await generation.next()).pieces).toHaveLength(AHEAD);
    await until(() => generation.stats().tokens.length === 2 * AHEAD);
    generation.stop(6);
    const tokens = [100, 101, 102, 103, 104, 105];
    expect(generation.stats()).toMatchObject({ end: 'cancelled', tokens, position: 13 });
    expect(instance.length).toBe(13);
    expect(await generation.next()).toMatchObject({ pieces: [], result: { tokens, position: 13 } });
    // A second stop, as of an embedding that is aborted later, changes nothing.
    instance.length = 5;
    generation.stop();
    expect(instance.length).toBe(5);
  });

  it('does so after the engine’s own end, which the page has not seen', async () => {
    const generation = begin();
    await until(() => !generation.stats().running);
    await generation.next();
    expect(instance.length).toBe(12);
    generation.stop(2);
    expect(generation.stats()).toMatchObject({ end: 'cancelled', tokens: [100, 101], position: 9 });
    expect(instance.length).toBe(9);
  });

  it('has no stop string, and has what is before one within a token', async () => {
    const texts = ['One', ' day.', '\n'];
    const shown = ['One', ' day'];
    instance.script = { text: (n) => texts[n]!, piece: (n) => shown[n] ?? '', end: { after: 3, why: 'stop' } };
    const generation = begin({ stop: ['.\n'] });
    expect(await drain(generation)).toEqual(shown);
    expect(generation.stats()).toMatchObject({ end: 'stop', tokens: [100], position: 8 });
    expect(instance.length).toBe(8);
    instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    expect(() => begin({ prompt: ' came', anew: false })).toThrow(/Too long/);
    delete instance.refuse.start;
    instance.script = {};
    await drain(begin({ prompt: ' came', anew: false }));
    expect(instance.text).toBe(' day came');
    await drain(begin({ prompt: ' and', anew: false }));
    expect(instance.text).toBe(' and');
  });

  it('gets that as ids before ids', async () => {
    instance.script = { text: () => 'ab', piece: () => 'a', end: { after: 1, why: 'stop' } };
    await drain(begin({ stop: ['b'] }));
    await drain(begin({ prompt: Uint32Array.of(5, 6), anew: false }));
    expect(instance).toMatchObject({ text: '', ids: [97, 5, 6] });
  });

  it('loses what it has of a token when it begins anew or goes back', async () => {
    for (const leave of [() => begin(), () => (runner.engine.rewind(3, 0), begin({ anew: false }))]) {
      instance.script = { text: () => 'ab', piece: () => 'a', end: { after: 1, why: 'stop' } };
      await drain(begin({ stop: ['b'] }));
      await drain(leave());
      expect(instance.text).toBe('Once');
    }
  });

  it('ends before a token with a part of a character', async () => {
    const texts = [Uint8Array.of(0x61, 0xe2), Uint8Array.of(0x82, 0xac, 0x62)];
    const shown = ['a', '€b'];
    instance.script = { text: (n) => texts[n]!, piece: (n) => shown[n]!, end: { after: 2, why: 'length' } };
    const generation = begin();
    await until(() => !generation.stats().running);
    generation.stop(1);
    expect(generation.stats()).toMatchObject({ tokens: [], position: 7 });
    instance.script = {};
    await drain(begin({ prompt: 'c', anew: false }));
    expect(instance.text).toBe('ac');
  });
});

describe('an error', () => {
  it('of the engine comes after the pieces that were made', async () => {
    instance.script = { fails: { before: 2, error: { code: 'internal', sentence: 'It broke.' } } };
    const generation = begin();
    await until(() => !generation.stats().running);
    expect(await generation.next()).toEqual({ pieces: ['<0>', '<1>'] });
    await expect(generation.next()).rejects.toMatchObject({ code: 'internal', message: 'It broke.' });
    await expect(generation.next()).rejects.toMatchObject({ code: 'internal' });
    expect(generation.stats()).toMatchObject({ end: 'error', running: false, tokens: [100, 101] });
  });

  it('of the source ends a next() that waits', async () => {
    instance.script = { reads: (n) => n === 0 };
    source.mode = 'held';
    const generation = begin();
    const next = generation.next();
    await until(() => source.held === 1);
    source.error = new Error('gone');
    source.release();
    await expect(next).rejects.toMatchObject({ code: 'internal', message: 'Error: gone' });
    expect(generation.stats().end).toBe('error');
    expect(() => generation.stop()).toThrow('gone');
  });
});
