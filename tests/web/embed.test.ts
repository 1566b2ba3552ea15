import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { QSF } from '../../web/src/page/qsf.js';
import type { EmbedOptions } from '../../web/src/types.js';
import { until } from './fake-engine.js';
import { installFakeWorker, open, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

describe('embed() of a page', () => {
  let backend: Backend;
  let llm: QSF;
  beforeEach(async () => {
    backend = installFakeWorker();
    llm = await QSF.load('https://example.org/model.qsf');
  });
  afterEach(removeFakeWorker);

  it('gives one embedding for a text, and a list for a list', async () => {
    expect(await llm.embed('four')).toEqual(Float32Array.of(4, 0.5));
    expect(await llm.embed(['one', [5, 6], Uint32Array.of(7)])).toEqual([3, 2, 1].map((n) => Float32Array.of(n, 0.5)));
    expect(await llm.embed([])).toEqual([]);
    expect(backend.embeds[0]).toEqual({
      ...{ texts: ['four'], addBos: true, special: true, pooling: undefined, normalize: undefined },
    });
    expect(backend.embeds[1]!.texts).toEqual(['one', Uint32Array.of(5, 6), Uint32Array.of(7)]);
  });

  it('passes on what is given', async () => {
    await llm.embed('a', { pooling: 'last', normalize: false, special: false });
    expect(backend.embeds[0]).toMatchObject({ pooling: 'last', normalize: false, special: false, addBos: true });
  });

  it.each<[object, string]>([
    [{ pooling: 'none' }, 'pooling is "none"; it must be one of mean, first, last'],
    [{ pooling: 1 }, 'pooling is 1; it must be one of mean, first, last'],
    [{ normalize: 1 }, 'normalize is 1; it must be true or false'],
    [{ addBos: 'yes' }, 'addBos is "yes"; it must be true or false'],
  ])('refuses %o without asking the worker', async (options, sentence) => {
    const embedding = llm.embed('a', options as EmbedOptions);
    await expect(embedding).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(sentence) as string,
    });
    await expect(llm.embed([[1.5]])).rejects.toMatchObject({ code: 'bad_token' });
    expect(backend.calls).toEqual(['load']);
  });

  it.each([
    ['a', null, 'the argument of embed() is null; it must be an object'],
    ['a', { signal: {} }, 'signal is an object; it must be an AbortSignal'],
    [null, {}, 'the texts are null; they must be a text or a list of texts'],
    [{ a: 1 }, {}, 'the texts are an object; they must be a text or a list of texts'],
    [[[{ role: 'user', content: 'Hello' }]], {}, 'the prompt is a list of objects, such as chat messages;'],
  ])('refuses %o and %o with an error of its own', async (texts, options, sentence) => {
    await expect(llm.embed(texts as never, options as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    expect(backend.calls).toEqual(['load']);
  });

  it("rejects with the worker's error and is free for the next", async () => {
    backend.answers.embed = async () => ({ ok: false, error: { code: 'context_full', sentence: 'Too long.' } });
    await expect(llm.embed('a')).rejects.toMatchObject({ code: 'context_full', message: 'Too long.' });
    backend.answers.embed = async () => ({ ok: true, value: [Float32Array.of(1)] });
    expect(await llm.embed('a')).toEqual(Float32Array.of(1));
  });

  it('is asked for while others run', async () => {
    const held = open<{ ok: true; value: Float32Array[] }>();
    backend.answers.embed = () => held.promise;
    const both = [llm.embed('a'), llm.embed('b')];
    await until(() => backend.embeds.length === 2);
    backend.will(['c']);
    expect(await llm.generate('b')).toBe('c');
    held.resolve({ ok: true, value: [Float32Array.of(1)] });
    expect(await Promise.all(both)).toEqual([Float32Array.of(1), Float32Array.of(1)]);
  });

  it('aborted rejects at once with the reason and stops the worker', async () => {
    backend.answers.embed = () => new Promise(() => undefined);
    const controller = new AbortController();
    const embedding = llm.embed('a', { signal: controller.signal });
    await until(() => backend.calls.includes('embed'));
    controller.abort(new Error('enough'));
    await expect(embedding).rejects.toThrow('enough');
    await until(() => backend.calls.includes('stop'));
    await expect(llm.embed('a', { signal: controller.signal })).rejects.toThrow('enough');
  });
});
