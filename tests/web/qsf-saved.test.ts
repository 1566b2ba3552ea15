// save() and restore() of the page, whose worker does as a test says. saved.test.ts has the worker's side.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { QSF } from '../../web/src/page/qsf.js';
import type { SaveOptions } from '../../web/src/types.js';
import { until } from './fake-engine.js';
import { failure, installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

const URL_ = 'https://example.org/model.qsf';

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(removeFakeWorker);

describe('save() and restore()', () => {
  it('ask the worker, with messages as JSON', async () => {
    const llm = await QSF.load(URL_);
    const messages = [{ role: 'user', content: 'Hello' }];
    expect(await (await llm.save()).text()).toBe('saved');
    await llm.save({ messages, name: 'talk' });
    expect(backend.saves).toEqual([
      { messages: '', name: undefined },
      { messages: JSON.stringify(messages), name: 'talk' },
    ]);
    const file = new Blob(['x']);
    backend.answers.restore = async () => ({ ok: true, value: { position: 3, sequence: 1, messages } });
    expect(await llm.restore(file)).toEqual({ position: 3, sequence: 1, messages });
    await llm.restore('talk');
    expect(backend.restores.map((from) => typeof from)).toEqual(['object', 'string']);
    backend.answers.restore = async () => failure('mismatch', 'the saved sequence is of another model');
    await expect(llm.restore(file)).rejects.toMatchObject({ code: 'mismatch' });
    backend.answers.save = async () => failure('io_error', 'the browser did not store talk.');
    await expect(llm.save({ name: 'talk' })).rejects.toMatchObject({ code: 'io_error' });
  });

  it('are asked for while something is computed, with their sequence, and not after close()', async () => {
    const llm = await QSF.load(URL_);
    backend.answers.next = () => new Promise(() => undefined);
    const abort = new AbortController();
    const generation = textOf(llm.generate('Once', { signal: abort.signal }));
    await until(() => backend.calls.includes('next'));
    await llm.save({ sequence: 2 });
    await llm.restore('talk', { sequence: 1 });
    await llm.rewind(3, { sequence: 3 });
    expect(backend.taken.map(({ sequence }) => sequence)).toEqual([undefined, 2, 1, 3]);
    expect(new Set(backend.taken.map(({ id }) => id)).size).toBe(4);
    expect(new Set(backend.taken.map(({ caller }) => caller)).size).toBe(1);
    await expect(llm.save({ sequence: 64 })).rejects.toMatchObject({ code: 'bad_argument' });
    await expect(llm.restore('talk', { sequence: -1 })).rejects.toMatchObject({ code: 'bad_argument' });
    await expect(llm.rewind(3, { sequenc: 3 } as never)).rejects.toThrow('did you mean sequence?');
    abort.abort(new Error('enough'));
    await expect(generation).rejects.toThrow('enough');
    await llm.save();
    await llm.close();
    await expect(llm.save()).rejects.toMatchObject({ code: 'bad_state' });
  });

  it.each([
    [{ as: 'x' }, 'save() has no option "as"'],
    [{ name: '' }, 'it must be a text of 1 to 60 characters'],
    [{ name: 7 }, 'it must be a text of 1 to 60 characters'],
    [{ messages: 'Hello' }, 'they must be a list of objects with a role'],
    [{ messages: [] }, 'they must be a list of objects with a role'],
  ])('refuse %o', async (options, sentence) => {
    const llm = await QSF.load(URL_);
    await expect(llm.save(options as SaveOptions)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(sentence) as string,
    });
    expect(backend.saves).toEqual([]);
  });

  it.each([[undefined], [7], [''], [new Uint8Array(3)]])('restore nothing from %o', async (from) => {
    const llm = await QSF.load(URL_);
    await expect(llm.restore(from as unknown as Blob)).rejects.toMatchObject({ code: 'bad_argument' });
    expect(backend.restores).toEqual([]);
  });
});
