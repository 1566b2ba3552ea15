// Calls that take the sequence of a model in the worker: first come, first served.
import './fair-channel.js';

import { beforeEach, describe, expect, it } from 'vitest';

import { openOptions, promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { GenerateRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import type { Model } from '../../web/src/worker/model.js';
import { CALL } from './call.js';
import { FakeSource, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';
import { modelOf } from './model-of.js';

const generateRequest: GenerateRequest = {
  ...checkOptions(samplerOptions, {}),
  ...checkOptions(promptOptions, { maxTokens: 100 }),
  ...{ prompt: 'Once', stop: [], anew: true },
};
const embedRequest = { texts: ['a'], addBos: true, special: true, pooling: undefined, normalize: undefined };

let instance: FakeSession;
let source: FakeSource & { makes?: boolean };
let model: Model;
beforeEach(async () => {
  const fake = fakeEngine();
  instance = fake.instance;
  source = new FakeSource();
  model = modelOf(
    {
      ...{ source: new Blob(), memory: 262_144, open: checkOptions(openOptions, {}), kv: undefined, cache: true },
      ...{ cacheLimit: undefined, background: false, variant: undefined, threads: undefined, network: {} },
    },
    fake.engine,
    source,
    { progress: () => undefined, warning: () => undefined },
  );
  await model.load();
});

it('a sequence of a model that is made as it is read is refused with the remedy', async () => {
  instance.refuse.save = { code: 'bad_state', sentence: 'not all known' };
  await expect(model.save(CALL, { messages: '', name: undefined })).rejects.toMatchObject({
    code: 'bad_state',
    message: 'not all known',
  });
  source.makes = true;
  await expect(model.save(CALL, { messages: '', name: undefined })).rejects.toThrow(
    /^not all known; .*(load it again|qsf-convert)/,
  );
});

describe('calls that take the sequence', () => {
  const next = { ...CALL, id: 'another call' };
  const bad = (code: string) => expect.objectContaining({ code }) as Error;

  it('have their turns one after the other', async () => {
    await expect(model.next(CALL.id)).rejects.toMatchObject({ code: 'bad_state' });
    expect(model.stop(CALL.id)).toBeUndefined();
    instance.script = { work: Infinity };
    await model.start(CALL, generateRequest);
    let isBegun = false;
    const beginning = model.start(next, { ...generateRequest, maxTokens: 1 }).then(() => (isBegun = true));
    await stays(() => !isBegun);
    instance.script = {};
    expect(model.stop(CALL.id)).toMatchObject({ end: 'cancelled', tokens: [] });
    await beginning;
    expect(await model.next(next.id)).toMatchObject({ pieces: ['<0>'] });
    expect(await model.next(next.id)).toMatchObject({ pieces: [], result: { end: 'length', sequence: 0 } });
    // Whoever has a result is forgotten.
    await expect(model.next(next.id)).rejects.toMatchObject({ code: 'bad_state' });
    await expect(model.next(CALL.id)).rejects.toMatchObject({ code: 'bad_state' });
  });

  it('end in the worker while another waits, though nobody takes their pieces', async () => {
    await model.start(CALL, { ...generateRequest, maxTokens: 60 });
    await until(() => model.stats().generation?.tokens.length === 16);
    await stays(() => model.stats().generation?.tokens.length === 16);
    await model.start(next, { ...generateRequest, maxTokens: 2 });
    expect(instance.calls.filter((call) => call === 'start 0')).toHaveLength(2);
    const { pieces } = await model.next(CALL.id);
    expect(pieces).toHaveLength(60);
    // A later call has changed the sequence, which is not cut.
    await until(() => model.stats().generation?.running === false);
    const { length } = instance;
    expect(model.stop(CALL.id, 3)).toMatchObject({ end: 'cancelled', tokens: [100, 101, 102] });
    expect(instance.length).toBe(length);
    expect(instance.calls.some((call) => call.startsWith('rewind'))).toBe(false);
    expect(model.stop(next.id, 1)).toMatchObject({ end: 'cancelled', tokens: [100] });
    expect(instance.calls.at(-1)).toBe('rewind 8 0');
  });

  it('are stopped while they wait', async () => {
    instance.script = { work: Infinity };
    await model.start(CALL, generateRequest);
    const waiting = model.rewind(next, 2);
    model.stop(next.id);
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    const closed = model.embed({ ...next, id: 'the last' }, embedRequest);
    await model.close();
    await expect(closed).rejects.toMatchObject({ code: 'cancelled' });
    expect(instance.embeds).toEqual([]);
  });

  it('go back after it', async () => {
    await model.start(CALL, { ...generateRequest, maxTokens: 3 });
    await expect(model.rewind(next, 11)).rejects.toMatchObject({ code: 'bad_argument' });
    expect(model.stats().generation).toMatchObject({ position: 10, running: false });
    await model.rewind(next, 8);
    expect(instance.length).toBe(8);
    await model.start(next, { ...generateRequest, maxTokens: 1, anew: false });
    expect(instance.calls.slice(-2)).toEqual(['rewind 8 0', 'start 0']);
  });

  it('leave the last one to statistics if they are refused, and the sequence to the next', async () => {
    await model.start(CALL, { ...generateRequest, maxTokens: 2 });
    await until(() => model.stats().generation?.running === false);
    instance.refuse.start = { code: 'bad_token', sentence: 'No such token.' };
    await expect(model.start(next, generateRequest)).rejects.toEqual(bad('bad_token'));
    expect(model.stats().generation).toMatchObject({ end: 'length', tokens: [100, 101] });
    expect(model.stats().position).toBe(8);
    instance.refuse.embed = { code: 'context_full', sentence: 'Too long.' };
    await expect(model.embed(next, embedRequest)).rejects.toEqual(bad('context_full'));
    delete instance.refuse.start;
    await model.start(next, generateRequest);
  });
});
