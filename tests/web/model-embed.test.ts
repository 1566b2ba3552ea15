import './fair-channel.js';

import { beforeEach, describe, expect, it } from 'vitest';

import { embeddingOptions, openOptions } from '../../web/src/boundary.gen.js';
import type { EmbedRequest } from '../../web/src/contract.js';
import type { Model } from '../../web/src/worker/model.js';
import { CALL } from './call.js';
import { checkOptions } from '../../web/src/page/options.js';
import { FakeSource, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';
import { modelOf } from './model-of.js';

describe('embed() of a worker', () => {
  const request: EmbedRequest = {
    ...{ ...checkOptions(embeddingOptions, {}), texts: ['one', Uint32Array.of(5, 6)] },
    ...{ pooling: undefined, normalize: undefined },
  };
  let instance: FakeSession;
  let model: Model;
  beforeEach(async () => {
    const fake = fakeEngine();
    instance = fake.instance;
    model = modelOf(
      {
        ...{ source: 'https://example.org/model.qsf', memory: 262_144, open: checkOptions(openOptions, {}) },
        ...{ kv: undefined, cache: true, cacheLimit: undefined, background: false },
        ...{ variant: undefined, threads: undefined, network: {} },
      },
      fake.engine,
      new FakeSource(),
      { progress: () => undefined, warning: () => undefined },
    );
    await model.load();
  });

  it('embeds text after text and gives copies', async () => {
    instance.script = { work: 3 };
    const embeddings = await model.embed(CALL, request);
    expect(embeddings).toEqual([Float32Array.of(1, 0.5), Float32Array.of(2, 0.5)]);
    expect(instance.embeds.map(({ text }) => text)).toEqual(['one', '']);
    expect(instance.embeds[1]!.ids).toEqual([5, 6]);
    expect(instance.embeds[0]!.options).toMatchObject({ addBos: true, special: true });
    expect(instance.embeds[0]!.options).toMatchObject({ pooling: undefined, normalize: undefined });
    expect(model.stats().model.dim).toBe(2);
  });

  it('tells the engine what was chosen', async () => {
    await model.embed(CALL, { ...request, pooling: 'last', normalize: false });
    expect(instance.embeds[0]!.options).toMatchObject({ pooling: 'last', normalize: false });
    await model.embed(CALL, { ...request, pooling: 'first', normalize: true });
    expect(instance.embeds[2]!.options).toMatchObject({ pooling: 'first', normalize: true });
  });

  it("ends with the engine's error, and goes on after it", async () => {
    instance.refuse.embed = { code: 'context_full', sentence: 'Too long.' };
    await expect(model.embed(CALL, request)).rejects.toMatchObject({ code: 'context_full' });
    delete instance.refuse.embed;
    expect(await model.embed(CALL, request)).toHaveLength(2);
  });

  it('is stopped on its way', async () => {
    instance.script = { work: 1e9 };
    const embedding = expect(model.embed(CALL, request)).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => instance.stepped > 20);
    model.stop(CALL.id);
    await embedding;
    const { stepped } = instance;
    await stays(() => instance.stepped <= stepped + 1); // the step that finds nothing to do
    expect(instance.calls.at(-1)).toBe('stop 0');
    instance.script = {};
    expect(await model.embed(CALL, request)).toHaveLength(2);
  });
});
