// The streams of generate() and chat(): loops, await, text() and result, alone and together.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Batch, Reply } from '../../web/src/contract.js';
import { QSF } from '../../web/src/page/qsf.js';
import type { GenerateOptions, GenerationStream } from '../../web/src/types.js';
import { stays, until } from './fake-engine.js';
import { failure, installFakeWorker, open, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

let backend: Backend;
let llm: QSF;
const unhandled = vi.fn();
beforeEach(async () => {
  process.on('unhandledRejection', unhandled);
  backend = installFakeWorker();
  llm = await QSF.load('https://example.org/model.qsf');
  backend.calls.length = 0;
});
afterEach(async () => {
  await stays(() => unhandled.mock.calls.length === 0);
  process.off('unhandledRejection', unhandled);
  removeFakeWorker();
});

/** A stream must not be awaited on its way to a test, so it comes in an object. */
type Begin = (options?: GenerateOptions) => { stream: GenerationStream };
describe.each<[string, Begin]>([
  ['generate()', (options) => ({ stream: llm.generate('Once', options) })],
  ['chat()', (options) => ({ stream: llm.chat('Once', options) })],
])('%s', (_, begin) => {
  const whole = async (stream: GenerationStream) => {
    let text = '';
    for await (const piece of stream) text += piece;
    return text;
  };

  it('awaited gives the whole text', async () => {
    backend.will(['a', 'b'], [], ['c']);
    expect(await begin().stream).toBe('abc');
    backend.will(['d'], ['e']);
    expect(await begin().stream.text()).toBe('de');
    expect(backend.calls).not.toContain('stop');
  });

  it('is a promise of the text with catch() and finally() too', async () => {
    const ended = vi.fn();
    backend.will(['a']);
    expect(await begin().stream.finally(ended)).toBe('a');
    expect(ended).toHaveBeenCalledOnce();
    backend.answers.start = async () => failure('context_full', 'Too long.');
    expect(await begin().stream.catch((error: Error) => error.message)).toBe('Too long.');
    expect(await begin().stream.then(null, (error: Error) => error.message)).toBe('Too long.');
  });

  it('asks nothing of the worker before it is read', async () => {
    const { stream } = begin();
    const { stream: wrong } = begin(null as never);
    await stays(() => backend.calls.length === 0);
    await expect(wrong).rejects.toMatchObject({ name: 'QSFError', code: 'bad_argument' });
    backend.will(['a']);
    expect(await stream).toBe('a');
  });

  it('generates by its result alone', async () => {
    backend.will(['a'], ['b']);
    const { stream } = begin();
    expect(await stream.result).toMatchObject(result);
    expect(await stream).toBe('ab');
    expect(backend.calls.filter((call) => call === 'start')).toHaveLength(1);
  });

  it('whose result nobody awaits leaves no rejection unhandled', async () => {
    backend.answers.start = async () => failure('context_full', 'Too long.');
    expect(begin().stream.result).toBeInstanceOf(Promise);
    await until(() => backend.calls.includes('start'));
  });

  it('gives every piece to a loop that begins after the others have asked', async () => {
    backend.will(['a'], ['b'], ['c']);
    const { stream } = begin();
    const [ended, text] = [stream.result, stream.text()];
    await ended;
    const pieces: string[] = [];
    for await (const piece of stream) pieces.push(piece);
    expect(pieces).toEqual(['a', 'b', 'c']);
    expect(await text).toBe('abc');
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it('gives the whole text to a loop, in it and after it', async () => {
    backend.will(['a', 'b'], ['c']);
    const { stream } = begin();
    const seen: string[] = [];
    for await (const piece of stream) seen.push(piece, await stream.text());
    expect(seen).toEqual(['a', 'abc', 'b', 'abc', 'c', 'abc']);
    expect(await stream).toBe('abc');
    expect(await stream.result).toMatchObject(result);
  });

  it('goes on by its text after some pieces were taken', async () => {
    backend.will(['a'], ['b'], ['c']);
    const { stream } = begin();
    expect((await stream.next()).value).toBe('a');
    expect(await stream.text()).toBe('abc');
  });

  it('does not run ahead of a loop by itself', async () => {
    backend.will(['a'], ['b'], ['c']);
    const { stream } = begin();
    await stream.next();
    await stays(() => backend.calls.filter((call) => call === 'next').length === 1);
    expect(await whole(stream)).toBe('bc');
  });

  it('left by a loop is the text until there, which is all that the sequence has', async () => {
    backend.will(['a', 'b', 'c'], ['d']);
    backend.answers.stop = async () => ({ ok: true, value: { ...result, end: 'cancelled' } });
    const { stream } = begin();
    for await (const piece of stream) if (piece === 'b') break;
    expect(await stream).toBe('ab');
    expect(await stream.result).toMatchObject({ end: 'cancelled' });
    expect(backend.shown).toEqual([2]);
  });

  it('rejects its result after an abort and a loop that was left, and leaves the model free', async () => {
    const abort = new AbortController();
    backend.will(['a'], ['b']);
    const { stream } = begin({ signal: abort.signal });
    await stream.next();
    abort.abort(new Error('enough'));
    await stream.return({ ...result });
    await expect(stream.result).rejects.toThrow('enough');
    backend.answers.start = async () => failure('context_full', 'Too long.');
    await expect(begin().stream.result).rejects.toMatchObject({ code: 'context_full' });
    await expect(begin().stream.result).rejects.toMatchObject({ code: 'context_full' });
  });

  it('left by a loop ends what others await too, with the same text', async () => {
    const asked = [open<Reply<Batch>>(), open<Reply<Batch>>()];
    const answers = [...asked];
    backend.answers.next = () => answers.shift()!.promise;
    backend.answers.stop = async () => {
      backend.answers.next = async () => ({ ok: true, value: { pieces: [], result: { ...result, end: 'cancelled' } } });
      return { ok: true, value: { ...result, end: 'cancelled' } };
    };
    const { stream } = begin();
    const text = stream.text();
    const first = stream.next();
    asked[0]!.resolve({ ok: true, value: { pieces: ['a', 'b'] } });
    expect((await first).value).toBe('a');
    await until(() => answers.length === 0); // the text waits for the third piece
    const left = stream.return({ ...result });
    asked[1]!.resolve({ ok: true, value: { pieces: ['c', 'd'] } });
    await left;
    expect(await text).toBe('abc');
    expect(await stream.result).toMatchObject({ end: 'cancelled' });
    expect(backend.shown).toEqual([3]);
  });

  it('that fails fails for everybody, and at once for a loop that is late', async () => {
    backend.will(['a', 'b'], ['c']);
    backend.answers.next = async () =>
      backend.batches.length > 1 ? { ok: true, value: backend.batches.shift()! } : failure('io_error', 'Gone.');
    const { stream } = begin();
    const refused = { name: 'QSFError', code: 'io_error', message: 'Gone.' };
    expect((await stream.next()).value).toBe('a');
    await expect(stream.result).rejects.toMatchObject(refused);
    await expect(stream.next()).rejects.toMatchObject(refused);
    await expect(stream.text()).rejects.toMatchObject(refused);
    await expect(stream).rejects.toMatchObject(refused);
  });

  it('aborted while it is awaited rejects with the reason and stops the worker', async () => {
    backend.answers.next = () => new Promise(() => undefined);
    const abort = new AbortController();
    const { stream } = begin({ signal: abort.signal });
    const text = stream.text();
    await until(() => backend.calls.includes('next'));
    abort.abort(new Error('enough'));
    await expect(text).rejects.toThrow('enough');
    await expect(stream.result).rejects.toThrow('enough');
    await until(() => backend.calls.includes('stop'));
    const late = begin({ signal: abort.signal }).stream;
    await expect(late).rejects.toThrow('enough');
  });

  it('is begun while another runs', async () => {
    const next = open<Reply<Batch>>();
    backend.answers.next = () => next.promise;
    const both = [begin().stream.text(), begin().stream.text()];
    await until(() => backend.starts.length === 2);
    next.resolve({ ok: true, value: { pieces: ['a'], result } });
    expect(await Promise.all(both)).toEqual(['a', 'a']);
  });

  it('of a closed model rejects', async () => {
    await llm.close();
    await expect(begin().stream).rejects.toMatchObject({ name: 'QSFError', code: 'bad_state' });
    await expect(begin().stream.result).rejects.toMatchObject({ code: 'bad_state' });
  });
});
