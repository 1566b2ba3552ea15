// qsf/prompt-api, compared with the published types of the Prompt API.
import { getEventListeners } from 'node:events';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { promptApi } from '../../web/src/prompt-api.js';
import type { LanguageModelSession } from '../../web/src/prompt-api.js';
import type { Stats } from '../../web/src/types.js';
import { removeFakeWorker } from '../web/fake-worker.js';
import { ANSWER, fakeModel } from './model.js';
import type { Fake } from './model.js';

type Published = Pick<typeof LanguageModel, 'create' | 'availability' | 'params'>;

const WINDOW = 1000;
let fake: Fake;
let api: Published;
beforeEach(async () => {
  fake = await fakeModel();
  fake.backend.answers.stats = async () => ({ ok: true, value: { plan: { maxSeqLen: WINDOW } } as Stats });
  api = promptApi(fake.llm); // the published types take it
  fake.says('Hi.');
});
afterEach(removeFakeWorker);

const hello = { role: 'user', content: 'Hello' } as const;
const hi = { role: 'assistant', content: 'Hi.' } as const;
const named = (name: string) => expect.objectContaining({ name }) as Error;

async function collect(stream: ReadableStream<string>): Promise<string[]> {
  const reader = stream.getReader();
  const all: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return all;
    all.push(value);
  }
}

it('takes null for no options, as browsers do', async () => {
  const none = null as unknown as undefined;
  expect(await api.availability(none)).toBe('available');
  const session = await api.create(none);
  expect(await session.prompt('Hello', none)).toBe('Hi.');
  expect(await collect(session.promptStreaming('Hello', none))).toEqual(['Hi.']);
  await session.append([hello], none);
  expect(await session.measureContextUsage('Hello', none)).toBeGreaterThan(0);
  (await session.clone(none)).destroy();
});

describe('prompt()', () => {
  it('goes on with the conversation', async () => {
    const system = { role: 'system', content: 'Be brief.' } as const;
    const session = await api.create({ initialPrompts: [system] });
    expect(await session.prompt('Hello')).toBe('Hi.');
    expect(fake.values().messages).toEqual([system, hello]);
    await session.append([{ role: 'user', content: [{ type: 'text', value: 'By the way.' }] }]);
    expect(await session.prompt([{ role: 'user', content: 'Why?' }])).toBe('Hi.');
    expect(fake.values().messages).toEqual([
      ...[system, hello, hi, { role: 'user', content: 'By the way.' }],
      { role: 'user', content: 'Why?' },
    ]);
  });

  it('samples as the session says', async () => {
    await (await api.create({ topK: 3, temperature: 0.5 })).prompt('Hello');
    await (await api.create({ samplingMode: 'most-predictable' })).prompt('Hello');
    expect(fake.backend.starts).toMatchObject([{ topK: 3, temperature: 0.5 }, { temperature: 0 }]);
  });

  it('holds the answer to a schema or a regular expression', async () => {
    const session = await api.create();
    await session.prompt('Hello', { responseConstraint: { type: 'integer' } });
    expect(fake.instance.grammar).toEqual({ kind: 'json_schema', text: '{"type":"integer"}' });
    await session.prompt('Hello', { responseConstraint: /a|b/ as never });
    expect(fake.instance.grammar).toEqual({ kind: 'regex', text: 'a|b' });
  });

  it('runs tools', async () => {
    fake.answers(ANSWER);
    const execute = vi.fn(async () => {
      fake.says('Sunny.');
      return 'sunny';
    });
    const tools = [{ name: 'weather', description: 'Weather', inputSchema: { type: 'object' }, execute }];
    const session = await api.create({ tools });
    expect(await session.prompt('Weather?')).toBe('I look it up.Sunny.');
    expect(execute).toHaveBeenCalledWith({ city: 'Zürich' });
    const { messages, tools: given } = fake.values();
    expect(messages.at(-1)).toMatchObject({ role: 'tool', name: 'weather', content: 'sunny' });
    expect(given).toMatchObject([{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]);
  });

  it('takes turns, in one session and in several', async () => {
    const [a, b] = [await api.create(), await api.create()];
    expect(await Promise.all([a.prompt('1'), b.prompt('2'), a.prompt('3')])).toEqual(['Hi.', 'Hi.', 'Hi.']);
    await a.prompt('4');
    expect(fake.values().messages.map(({ content }) => content)).toEqual(['1', 'Hi.', '3', 'Hi.', '4']);
  });
});

describe('promptStreaming()', () => {
  it('gives pieces', async () => {
    fake.answers([[{ kind: 'thought', text: 'Hm.' }], [{ kind: 'text', text: 'A' }], [{ kind: 'text', text: 'B' }]]);
    const session = await api.create();
    expect(await collect(session.promptStreaming('Hello'))).toEqual(['A', 'B']);
    fake.says('Hi.');
    await session.prompt('Why?');
    expect(fake.values().messages[1]).toEqual({ role: 'assistant', content: 'AB', reasoning_content: 'Hm.' });
  });

  it('ends when it is cancelled, and leaves the conversation as it was', async () => {
    const session = await api.create();
    fake.hold();
    const stream = session.promptStreaming('Hello');
    await fake.waits();
    await stream.cancel();
    fake.release();
    fake.says('Hi.');
    await session.prompt('Why?');
    expect(fake.values().messages).toEqual([{ role: 'user', content: 'Why?' }]);
  });
});

describe('an abort', () => {
  it('rejects with the reason', async () => {
    const session = await api.create();
    fake.hold();
    const abort = new AbortController();
    const asked = session.prompt('Hello', { signal: abort.signal });
    await Promise.all([expect(asked).rejects.toEqual(named('AbortError')), fake.waits().then(() => abort.abort())]);
    await expect(api.create({ signal: AbortSignal.abort() })).rejects.toEqual(named('AbortError'));
  });

  it('is awaited as long as the call runs', async () => {
    const { signal } = new AbortController();
    const session = await api.create();
    await session.prompt('Hello', { signal });
    await session.append('By the way.', { signal });
    await session.measureContextUsage('a', { signal });
    await collect(session.promptStreaming('Why?', { signal }));
    await session.promptStreaming('Why?', { signal }).cancel();
    await session.prompt('a'.repeat(WINDOW), { signal }).catch(() => undefined);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('by destroy() ends what runs and what comes', async () => {
    const session = await api.create();
    fake.hold();
    const asked = session.prompt('Hello');
    await Promise.all([expect(asked).rejects.toEqual(named('AbortError')), fake.waits().then(() => session.destroy())]);
    for (const call of [session.prompt('a'), session.append('a'), session.clone(), session.measureContextUsage('a')])
      await expect(call).rejects.toEqual(named('AbortError'));
    await expect(collect(session.promptStreaming('a'))).rejects.toEqual(named('AbortError'));
  });

  it('of the signal of create() destroys the session', async () => {
    const abort = new AbortController();
    const session = await api.create({ signal: abort.signal });
    abort.abort();
    await expect(session.prompt('Hello')).rejects.toEqual(named('AbortError'));
  });
});

describe('errors', () => {
  const create = (options: object) => api.create(options);
  it.each<[string, object, string]>([
    ['images', { expectedInputs: [{ type: 'image' }] }, 'NotSupportedError'],
    ['topK of 0', { topK: 0, temperature: 1 }, 'RangeError'],
    ['a negative temperature', { topK: 1, temperature: -1 }, 'RangeError'],
    ['a mode with a temperature', { samplingMode: 'balanced', temperature: 1 }, 'TypeError'],
    ['a late system message', { initialPrompts: [hello, { role: 'system', content: 'x' }] }, 'TypeError'],
    ['an unknown role', { initialPrompts: [{ role: 'x', content: 'x' }] }, 'TypeError'],
  ])('of create(): %s', async (_, options, name) => {
    await expect(create(options)).rejects.toEqual(named(name));
  });

  it('of inputs', async () => {
    const session = await api.create();
    const image = [{ role: 'user', content: [{ type: 'image', value: new Uint8Array(1) }] }] as const;
    await expect(session.prompt(image as never)).rejects.toEqual(named('NotSupportedError'));
    const begun = [hello, { role: 'assistant', content: 'x', prefix: true }] as const;
    await expect(session.prompt(begun as never)).rejects.toEqual(named('NotSupportedError'));
    await expect(session.prompt('a', { responseConstraint: 5 as never })).rejects.toEqual(named('TypeError'));
    for (const constraint of [/yes/i, /a.b/s, /^a$/m])
      await expect(session.prompt('a', { responseConstraint: constraint as never })).rejects.toEqual(
        named('NotSupportedError'),
      );
    await expect(session.prompt('a'.repeat(WINDOW))).rejects.toMatchObject({
      name: 'QuotaExceededError',
      quota: WINDOW,
    });
    expect(await session.prompt('Hello')).toBe('Hi.');
  });

  it('of the engine', async () => {
    const session = await api.create();
    fake.instance.refuse.start = { code: 'unsupported', sentence: 'No such schema.' };
    await expect(session.prompt('Hello')).rejects.toEqual(named('NotSupportedError'));
    fake.instance.refuse.start = { code: 'internal', sentence: 'Broken.' };
    await expect(session.prompt('Hello')).rejects.toEqual(named('UnknownError'));
  });
});

describe('the context', () => {
  it('is measured', async () => {
    const session = await api.create({ initialPrompts: [hello] });
    expect(session.contextWindow).toBe(WINDOW);
    // The fake template's text is the conversation as JSON, with a token for each character.
    const size = (...messages: object[]) => JSON.stringify({ messages, add_generation_prompt: true }).length;
    expect(session.contextUsage).toBe(size(hello));
    expect(await session.measureContextUsage('More')).toBe(
      size(hello, { role: 'user', content: 'More' }) - size(hello),
    );
    expect([session.inputUsage, session.inputQuota]).toEqual([session.contextUsage, WINDOW]);
    await session.append('More');
    expect(session.contextUsage).toBe(size(hello, { role: 'user', content: 'More' }));
    await session.prompt('Hello');
    expect(session.contextUsage).toBe(fake.instance.length);
  });

  it('loses the oldest messages when it is full, except the first ones', async () => {
    const session = await api.create({ initialPrompts: [{ role: 'system', content: 'Be brief.' }] });
    const overflows: string[] = [];
    session.addEventListener('contextoverflow', ({ type }) => overflows.push(type));
    session.oncontextoverflow = ({ type }) => void overflows.push(`on${type}`);
    await session.prompt('a'.repeat(WINDOW / 2));
    expect(overflows).toEqual([]);
    await session.prompt('b'.repeat(WINDOW / 2));
    expect(overflows.sort()).toEqual(['contextoverflow', 'oncontextoverflow']);
    expect(fake.values().messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'b'.repeat(WINDOW / 2) },
    ]);
  });
});

it('clone() goes on from the same conversation, apart from it', async () => {
  const session = await api.create();
  await session.prompt('Hello');
  const other = await session.clone();
  expect(other.contextUsage).toBe(session.contextUsage);
  await session.prompt('One');
  await other.prompt('Two');
  expect(fake.values().messages).toEqual([hello, hi, { role: 'user', content: 'Two' }]);
  session.destroy();
  expect(await other.prompt('Three')).toBe('Hi.');
});

it('opens a model with the first session, and reports its download', async () => {
  const shares: number[] = [];
  const open = vi.fn(async (report: (progress: never) => void) => {
    report({ loaded: 1, total: 4 } as never);
    return fake.llm;
  });
  const lazy: Published = promptApi(open);
  expect(await lazy.availability()).toBe('downloadable');
  const creating = lazy.create({
    monitor: (monitor) => monitor.addEventListener('downloadprogress', ({ loaded }) => shares.push(loaded)),
  });
  expect(await lazy.availability()).toBe('downloading');
  const session: LanguageModelSession = (await creating) as LanguageModelSession;
  expect(await session.prompt('Hello')).toBe('Hi.');
  await lazy.create();
  expect(open).toHaveBeenCalledTimes(1);
  expect(shares).toEqual([0, 0.25, 1]);
  expect(await lazy.availability({ expectedInputs: [{ type: 'audio' }] })).toBe('unavailable');
  expect(await lazy.params()).toMatchObject({ defaultTopK: 40, defaultTemperature: 0.7 });
});
