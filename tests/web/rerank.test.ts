import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { embeddingOptions, openOptions } from '../../web/src/boundary.gen.js';
import type { EmbedRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { QSF } from '../../web/src/page/qsf.js';
import { CALL } from './call.js';
import { FakeSource, fakeEngine, until } from './fake-engine.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';
import { modelOf } from './model-of.js';

describe('rerank() of a page', () => {
  let backend: Backend;
  let llm: QSF;
  beforeEach(async () => {
    backend = installFakeWorker();
    llm = await QSF.load('https://example.org/model.qsf');
  });
  afterEach(removeFakeWorker);

  it('gives places and scores, the best one first', async () => {
    backend.answers.embed = async () => ({ ok: true, value: [0.25, -3, 7.5].map((score) => Float32Array.of(score)) });
    expect(await llm.rerank('What?', ['a', 'b', 'c'])).toEqual([
      { index: 2, score: 7.5 },
      { index: 0, score: 0.25 },
      { index: 1, score: -3 },
    ]);
    expect(backend.embeds[0]).toMatchObject({ query: 'What?', texts: ['a', 'b', 'c'], pooling: undefined });
  });

  it('of no texts is empty', async () => {
    expect(await llm.rerank('What?', [])).toEqual([]);
  });

  it.each<[unknown, unknown, object, string]>([
    [7, ['a'], {}, 'rerank() takes a query, which is a text, and a list of texts'],
    ['q', 'a', {}, 'rerank() takes a query, which is a text, and a list of texts'],
    ['q', [[1, 2]], {}, 'rerank() takes a query, which is a text, and a list of texts'],
    ['q', ['a'], { pooling: 'mean' }, 'pooling'],
    ['q', ['a'], { signal: 1 }, 'signal is 1; it must be an AbortSignal'],
  ])('refuses %o, %o and %o without asking the worker', async (query, texts, options, sentence) => {
    await expect(llm.rerank(query as string, texts as string[], options)).rejects.toMatchObject({
      ...{ code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    expect(backend.calls).toEqual(['load']);
  });

  it('aborted rejects at once with the reason and stops the worker', async () => {
    backend.answers.embed = () => new Promise(() => undefined);
    const controller = new AbortController();
    const ranking = llm.rerank('q', ['a'], { signal: controller.signal });
    await until(() => backend.calls.includes('embed'));
    controller.abort(new Error('enough'));
    await expect(ranking).rejects.toThrow('enough');
    await until(() => backend.calls.includes('stop'));
  });
});

describe('rerank() of a worker', () => {
  it('scores text after text, and ends with the engine’s error', async () => {
    const { engine, instance } = fakeEngine();
    const model = modelOf(
      {
        ...{ source: 'https://example.org/model.qsf', memory: 262_144, open: checkOptions(openOptions, {}) },
        ...{ kv: undefined, cache: true, cacheLimit: undefined, background: false },
        ...{ variant: undefined, threads: undefined, network: {} },
      },
      engine,
      new FakeSource(),
      { progress: () => undefined, warning: () => undefined },
    );
    await model.load();
    const request: EmbedRequest = {
      ...{ ...checkOptions(embeddingOptions, {}), texts: ['café', 'b'], query: 'què?' },
      ...{ pooling: undefined, normalize: undefined },
    };
    expect((await model.embed(CALL, request)).map(([score]) => score)).toEqual([1, 2]);
    expect(instance.pairs).toEqual([
      ['què?', 'café'],
      ['què?', 'b'],
    ]);
    instance.refuse.embed = { code: 'unsupported', sentence: 'This model is no reranker.' };
    await expect(model.embed(CALL, request)).rejects.toMatchObject({
      ...{ code: 'unsupported', message: 'This model is no reranker.' },
    });
    instance.refuse.embed = { code: 'bad_argument', sentence: 'the document is empty' };
    const message = 'texts[0]: the document is empty';
    await expect(model.embed(CALL, request)).rejects.toMatchObject({ code: 'bad_argument', message });
    const embedding: EmbedRequest = { ...request };
    delete embedding.query;
    for (const asked of [request, embedding]) {
      let begun = 0;
      instance.refuse.embed = () => (begun++ === 1 ? { code: 'context_full', sentence: 'It is long.' } : undefined);
      await expect(model.embed(CALL, asked)).rejects.toThrow('texts[1]: It is long.');
    }
    instance.refuse.embed = { code: 'bad_argument', sentence: 'the query is empty' };
    await expect(model.embed(CALL, { ...request, query: '' })).rejects.toThrow(/^the query/);
    instance.refuse.embed = { code: 'context_full', sentence: 'It is long.' };
    await expect(model.embed(CALL, { ...request, texts: ['a'] })).rejects.toThrow(/^It is long/);
  });
});
