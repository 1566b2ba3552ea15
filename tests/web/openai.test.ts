// OpenAI's shapes: what callers get and what the worker is asked, with the worker's own generation over a fake engine.
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest';

import type { End } from '../../web/src/boundary.gen.js';
import { reply } from '../../web/src/contract.js';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  Completion,
  CreateEmbeddingResponse,
} from '../../web/src/openai-types.js';
import { QSF } from '../../web/src/page/qsf.js';
import { Generation } from '../../web/src/worker/generation.js';
import { Passes } from '../../web/src/worker/passes.js';
import { Runner } from '../../web/src/worker/runner.js';
import { turnIn } from './call.js';
import { FakeSource, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const messages = [{ role: 'user', content: 'Hello' }];

let backend: Backend;
let instance: FakeSession;
let source: FakeSource;
let llm: QSF;
beforeEach(async () => {
  backend = installFakeWorker();
  const fake = fakeEngine();
  instance = fake.instance;
  source = new FakeSource();
  const passes = new Passes(new Runner(fake.engine, source));
  let generation: Generation;
  Object.assign(backend.answers, {
    start: () => reply(() => void (generation = new Generation(fake.engine, passes, turnIn(), backend.starts.at(-1)!))),
    next: () => reply(() => generation.next()),
    stop: () => reply(() => generation.stop(backend.shown.at(-1))),
  });
  llm = await QSF.load('https://example.org/model.qsf');
  backend.calls.length = 0;
});
afterEach(removeFakeWorker);

async function collect<T>(chunks: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const head = (prefix: string) => ({
  id: expect.stringMatching(new RegExp(`^${prefix}-[0-9a-f]{32}$`)) as string,
  created: expect.any(Number) as number,
  model: 'qsf',
});
/** Of the fake's prompt of seven tokens and an answer of so many. */
const usage = (completion_tokens: number, ended = 0) => ({
  ...{ prompt_tokens: 7, completion_tokens: completion_tokens + ended },
  ...{ total_tokens: 7 + completion_tokens + ended, prompt_tokens_details: { cached_tokens: 0 } },
});

describe('chat.completions.create()', () => {
  const create = (more: Partial<ChatCompletionCreateParams> = {}) =>
    llm.chat.completions.create({ messages, max_tokens: 3, ...more }) as Promise<ChatCompletion>;

  it('gives a whole answer', async () => {
    const before = Math.floor(Date.now() / 1000);
    const answer = await llm.chat.completions.create({ messages, max_tokens: 3 });
    expectTypeOf(answer).toEqualTypeOf<ChatCompletion>();
    expect(answer).toEqual({
      ...{ ...head('chatcmpl'), object: 'chat.completion', usage: usage(3) },
      choices: [
        {
          ...{ index: 0, logprobs: null, finish_reason: 'length' },
          message: { role: 'assistant', content: '<0><1><2>', refusal: null },
        },
      ],
    });
    expect(answer.created).toBeGreaterThanOrEqual(before);
    expect(answer.created).toBeLessThanOrEqual(Date.now() / 1000);
    expect((await create({ model: 'gpt-4o' })).model).toBe('gpt-4o');
    expect((await create()).id).not.toBe(answer.id);
  });

  it('gives chunks, the last of which has the reason for the end', async () => {
    const stream = await llm.chat.completions.create({ messages, max_tokens: 2, stream: true });
    const chunks = await collect(stream);
    expectTypeOf(chunks).toEqualTypeOf<ChatCompletionChunk[]>();
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ ...head('chatcmpl'), object: 'chat.completion.chunk' },
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    });
    expect(chunks).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: '<0>' }),
      chunk({ content: '<1>' }),
      chunk({}, 'length'),
    ]);
    expect(new Set(chunks.map(({ id, created }) => `${id} ${String(created)}`)).size).toBe(1);
  });

  const logprobs = {
    content: [1, 2].map((n) => ({
      ...{ token: `<${String(n - 1)}>`, bytes: [60, 47 + n, 62], logprob: -n },
      top_logprobs: [
        { token: '<0>', bytes: [60, 48, 62], logprob: -n - 0.5 },
        { token: '<1>', bytes: [60, 49, 62], logprob: -9999 },
      ],
    })),
    refusal: null,
  };

  it('gives log-probabilities, with the last chunk of a stream', async () => {
    const how = { max_tokens: 2, logprobs: true, top_logprobs: 2 };
    expect((await create(how)).choices[0]?.logprobs).toEqual(logprobs);
    const chunks = await collect(await llm.chat.completions.create({ messages, ...how, stream: true }));
    expect(chunks.map(({ choices }) => choices[0]?.logprobs)).toEqual([null, null, null, logprobs]);
    expect((await create({ max_tokens: 1, logprobs: true })).choices[0]?.logprobs?.content[0]?.top_logprobs).toEqual(
      [],
    );
    await expect(create({ top_logprobs: 3 })).rejects.toThrow('top_logprobs is given without logprobs: true');
    await expect(create({ logprobs: true, top_logprobs: 21 })).rejects.toThrow('top_logprobs is 21');
  });

  it('gives the usage after the chunks, if it is asked for', async () => {
    const how = { messages, max_tokens: 2, stream: true, stream_options: { include_usage: true } } as const;
    const chunks = await collect(await llm.chat.completions.create(how));
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null && chunk.choices.length === 1)).toBe(true);
    expect(chunks.at(-1)).toEqual({
      ...{ ...head('chatcmpl'), object: 'chat.completion.chunk', choices: [], usage: usage(2) },
    });
    const without = { ...how, stream_options: { include_usage: false } };
    expect((await collect(await llm.chat.completions.create(without))).some((chunk) => 'usage' in chunk)).toBe(false);
  });

  it.each<[End, string, number]>([
    ['eos', 'stop', 0],
    ['stop', 'stop', 0],
    ['length', 'length', 0],
    ['context', 'length', 0],
  ])('ended by %s has the finish reason %s', async (why, finish_reason) => {
    instance.script = { end: { after: 2, why } };
    const { choices } = await create({ max_tokens: 9 });
    expect(choices[0]).toMatchObject({ finish_reason, message: { content: '<0><1>' } });
  });

  it('counts the token that ends a text, and tokens of the prompt that were there already', async () => {
    const ends = { promptTokens: 17, reusedTokens: 12, tokens: [1, 2], seed: 1, sequence: 0 };
    const endedBy = async (end: Exclude<End, 'none'>, position: number) => {
      backend.answers.start = async () => ({ ok: true, value: undefined });
      backend.answers.next = async () => ({ ok: true, value: { pieces: ['a'], result: { ...ends, end, position } } });
      return (await create()).usage;
    };
    // Twelve tokens of the prompt were there already; 5 were computed; the text has 2.
    const details = { prompt_tokens_details: { cached_tokens: 12 } };
    expect(await endedBy('eos', 20)).toEqual({
      ...{ prompt_tokens: 17, completion_tokens: 3, total_tokens: 20, ...details },
    });
    expect(await endedBy('stop', 19)).toEqual({
      ...{ prompt_tokens: 17, completion_tokens: 2, total_tokens: 19, ...details },
    });
  });

  it('passes options on by their own names', async () => {
    await create({
      ...{ temperature: 0.5, top_p: 0.25, seed: 42, stop: ['x', 'y'], max_tokens: 2, max_completion_tokens: 2 },
      ...{ response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'integer' } } } },
    });
    expect(backend.starts[0]).toMatchObject({
      ...{ temperature: 0.5, topP: 0.25, seed: 42, stop: ['x', 'y'], maxTokens: 2 },
      grammar: { kind: 'json_schema', text: '{"type":"integer"}' },
    });
    await create({ max_completion_tokens: 3, response_format: { type: 'json_object' } });
    expect(backend.starts[1]).toMatchObject({ maxTokens: 3, grammar: { text: '{"type":"object"}' } });
    await create({ presence_penalty: 0.5, frequency_penalty: -1, logit_bias: { 5: 100, 7: -Infinity } });
    expect(backend.starts[2]).toMatchObject({ presencePenalty: 0.5, frequencyPenalty: -1 });
    expect(instance.lists.biases).toEqual([
      [5, 100],
      [7, -Infinity],
    ]);
    await create({ response_format: { type: 'text' } });
    expect(backend.starts[3]!.grammar).toBeUndefined();
    expect(backend.starts[3]).toMatchObject({ temperature: 0.7, topP: 0.9, topK: 40, stop: [], anew: true });
  });

  it('gives several choices of one prompt, with seeds that follow one another', async () => {
    const { choices, usage } = await create({ n: 3, seed: 7, max_tokens: 2 });
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, '<0><1>'],
      [1, '<0><1>'],
      [2, '<0><1>'],
    ]);
    expect(backend.starts.map(({ seed }) => seed)).toEqual([7, 8, 9]);
    expect(usage.completion_tokens).toBe(6);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + 6);
    expect(usage.prompt_tokens_details.cached_tokens).toBe(0);
    await create({ n: 2, max_tokens: 1 });
    expect(new Set(backend.starts.slice(3).map(({ seed }) => seed)).size).toBe(2);
  });

  it('gives the chunks of one choice after the other', async () => {
    const how = { messages, n: 2, max_tokens: 1, stream: true, stream_options: { include_usage: true } } as const;
    const chunks = await collect(await llm.chat.completions.create(how));
    expect(chunks.map(({ choices }) => choices.map(({ index, delta }) => [index, delta.content]))).toEqual([
      ...[[[0, '']], [[0, '<0>']], [[0, undefined]]],
      ...[[[1, '']], [[1, '<0>']], [[1, undefined]]],
      [],
    ]);
    expect(chunks.at(-1)!.usage!.completion_tokens).toBe(2);
    const texts = await llm.completions.create({ prompt: 'Once', n: 2, max_tokens: 1 });
    expect(texts.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, '<0>'],
      [1, '<0>'],
    ]);
    const pieces = await collect(await llm.completions.create({ prompt: 'Once', n: 2, max_tokens: 1, stream: true }));
    expect(pieces.map(({ choices }) => choices[0]!.index)).toEqual([0, 0, 1, 1]);
  });

  it('takes null for omitted, and values that ask for nothing', async () => {
    const nulls = [
      ...['model', 'user', 'temperature', 'top_p', 'seed', 'stop', 'stream', 'stream_options', 'n', 'logit_bias'],
      ...['presence_penalty', 'frequency_penalty', 'tools', 'tool_choice', 'response_format', 'logprobs', 'audio'],
      ...['top_logprobs', 'metadata', 'reasoning_effort', 'max_completion_tokens', 'modalities', 'parallel_tool_calls'],
    ];
    const answer = await create(Object.fromEntries(nulls.map((name) => [name, null])));
    expect(answer.choices[0]!.message.content).toBe('<0><1><2>');
    const nothing = {
      ...{ n: 1, logprobs: false, presence_penalty: 0, frequency_penalty: 0, logit_bias: {}, modalities: ['text'] },
      ...{ store: false, service_tier: 'auto', parallel_tool_calls: true, user: 'me', metadata: { a: 'b' } },
      ...{ stream: false, tools: [], safety_identifier: 'x', prompt_cache_key: 'y', tool_choice: 'auto' },
    };
    expect((await create(nothing)).choices[0]!.message.content).toBe('<0><1><2>');
    expect(JSON.parse(instance.chat!.values)).toEqual({ messages, add_generation_prompt: true });
  });

  const chat = () => JSON.parse(instance.chat!.values) as { messages: object[]; tools?: object[] };

  it("gives templates OpenAI's messages as they expect them", async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":[1]}' } };
    await create({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'A' },
            { type: 'text', text: 'B' },
          ],
        },
        { role: 'assistant', content: null, refusal: null, audio: null, tool_calls: [call] } as never,
        { role: 'tool', tool_call_id: 'c1', content: '5' },
        { role: 'assistant', content: 'Five.', tool_calls: null, reasoning_content: 'Hm.' },
        { role: 'user', name: 'Ann', content: 'Why?' },
      ],
    });
    expect(chat().messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'A\nB' },
      { role: 'assistant', content: '', tool_calls: [{ ...call, function: { name: 'f', arguments: { a: [1] } } }] },
      { role: 'tool', content: '5', tool_call_id: 'c1' },
      { role: 'assistant', content: 'Five.', reasoning_content: 'Hm.' },
      { role: 'user', content: 'Why?', name: 'Ann' },
    ]);
  });

  it('leaves arguments that are not JSON of an object to the template', async () => {
    const call = (json: string) => ({ id: 'c', type: 'function', function: { name: 'f', arguments: json } });
    await create({ messages: [{ role: 'assistant', tool_calls: [call('{'), call('5')] }, ...messages] });
    expect(chat().messages[0]).toMatchObject({ tool_calls: [call('{'), call('5')] });
  });

  it('gives calls without arguments empty ones', async () => {
    for (const given of ['', null, undefined, '{}', 'null']) {
      const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: given as string } };
      await create({ messages: [{ role: 'assistant', tool_calls: [call] }, ...messages] });
      const read = { ...call, function: { name: 'f', arguments: {} } };
      expect(chat().messages[0]).toMatchObject({ tool_calls: [read] });
    }
  });

  it('gives tools to the template, unless tool_choice is none', async () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];
    await create({ tools });
    expect(chat().tools).toEqual(tools);
    await create({ tools, tool_choice: 'none' });
    expect(chat()).not.toHaveProperty('tools');
  });

  it('asks for at most one call', async () => {
    await create({ tools: [{ type: 'function', function: { name: 'f' } }], parallel_tool_calls: false });
    expect(backend.starts.at(-1)).toMatchObject({ oneCall: true });
    await expect(create({ parallel_tool_calls: 'no' as never })).rejects.toMatchObject({ code: 'bad_argument' });
  });

  it('holds calls that are required, and all if a tool is strict', async () => {
    const free = { thought: 0xffffffff, calls: false, required: false, only: '' };
    const tool = { type: 'function', function: { name: 'f', parameters: {} } };
    await create({ tools: [tool], tool_choice: 'auto' });
    expect(instance.held).toEqual(free);
    await create({ tools: [tool], tool_choice: 'required' });
    expect(instance.held).toEqual({ ...free, calls: true, required: true });
    await create({ tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } });
    expect(instance.held).toEqual({ ...free, calls: true, required: true, only: 'f' });
    await create({ tools: [{ ...tool, function: { ...tool.function, strict: true } }] });
    expect(instance.held).toEqual({ ...free, calls: true });
    await create({ tools: [tool], tool_choice: 'none' });
    expect(instance.held).toEqual(free);
  });

  it('ends thoughts after a budget, and holds the text after them', async () => {
    const free = { calls: false, required: false, only: '' };
    const tool = { type: 'function', function: { name: 'f', strict: true } };
    await create({ reasoning_budget: 0 });
    expect(instance.held).toEqual({ ...free, thought: 0 });
    await create({ reasoning_budget: -1 });
    expect(instance.held).toEqual({ ...free, thought: 0xffffffff });
    await create({ reasoning_budget: 20, response_format: { type: 'json_object' }, tools: [tool] });
    expect(instance.held).toEqual({ ...free, thought: 20 });
    expect(instance.grammar!.kind).toBe('json_schema');
  });

  it('gives the effort of thinking and further variables to the template, or to another one', async () => {
    await create({ reasoning_effort: 'low' });
    expect(instance.chat!.more).toBe('{"reasoning_effort":"low"}');
    await create({ reasoning_effort: 'none' });
    expect(instance.chat!.more).toBe('{"reasoning_effort":"none","enable_thinking":false}');
    await create({
      reasoning_effort: 'none',
      chat_template: 'T',
      chat_template_kwargs: { enable_thinking: true, a: 1 },
    });
    const more = { reasoning_effort: 'none', enable_thinking: true, a: 1 };
    expect(instance.chat).toMatchObject({ template: 'T', more: JSON.stringify(more) });
    await create({ chat_template_kwargs: { a: 1 } });
    expect(instance.chat).toMatchObject({ template: '', more: '{"a":1}' });
  });

  it('refuses wrong parameters of a stream before it is read', async () => {
    const how = { messages: [], stream: true } as const;
    await expect(llm.chat.completions.create(how)).rejects.toMatchObject({ code: 'bad_argument' });
  });

  it('aborted rejects with the reason, whole and in chunks', async () => {
    source.mode = 'held';
    instance.script = { reads: () => true };
    for (const stream of [false, true]) {
      const abort = new AbortController();
      const { signal } = abort;
      const reading = (async () => {
        const answer = await llm.chat.completions.create({ messages, stream }, { signal });
        if (Symbol.asyncIterator in answer) await collect(answer);
      })();
      await until(() => backend.calls.filter((call) => call === 'next').length > 0);
      abort.abort(new Error('enough'));
      await expect(reading).rejects.toThrow('enough');
      await until(() => backend.calls.includes('stop'));
      backend.calls.length = 0;
      await expect(llm.chat.completions.create({ messages }, { signal })).rejects.toThrow('enough');
    }
  });

  it('takes null in place of a signal', async () => {
    const { choices } = await llm.chat.completions.create({ messages, max_tokens: 1 }, { signal: null });
    expect(choices[0]!.message.content).toBe('<0>');
  });

  it('left by its loop stops the computation', async () => {
    const stream = await llm.chat.completions.create({ messages, stream: true });
    for await (const { choices } of stream) if (choices[0]!.delta.content === '<1>') break;
    expect(backend.shown).toEqual([2]);
    expect((await create()).choices[0]!.message.content).toBe('<0><1><2>');
  });

  it('whose stream nobody reads, or only its first chunk, holds nothing', async () => {
    const stream = await llm.chat.completions.create({ messages, stream: true });
    await llm.chat.completions.create({ messages, stream: true });
    await stream.next();
    await stream.return(undefined);
    await stays(() => backend.calls.length === 0);
    expect((await create()).choices[0]!.message.content).toBe('<0><1><2>');
  });

  it("rejects with the engine's errors", async () => {
    instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    await expect(create()).rejects.toMatchObject({ name: 'QSFError', code: 'context_full' });
    const stream = await llm.chat.completions.create({ messages, stream: true });
    await expect(collect(stream)).rejects.toMatchObject({ name: 'QSFError', code: 'context_full' });
  });
});

describe('completions.create()', () => {
  it('gives a whole text', async () => {
    const text = await llm.completions.create({ prompt: 'Once', max_tokens: 3, temperature: 0, stop: 'x' });
    expectTypeOf(text).toEqualTypeOf<Completion>();
    expect(text).toEqual({
      ...{ ...head('cmpl'), object: 'text_completion', usage: usage(3) },
      choices: [{ index: 0, text: '<0><1><2>', logprobs: null, finish_reason: 'length' }],
    });
    expect(backend.starts[0]).toMatchObject({ prompt: 'Once', maxTokens: 3, temperature: 0, stop: ['x'] });
  });

  it('gives log-probabilities, with the last chunk of a stream', async () => {
    const how = { prompt: 'Once', max_tokens: 2, logprobs: 2 } as const;
    const logprobs = {
      ...{ tokens: ['<0>', '<1>'], token_logprobs: [-1, -2], text_offset: [0, 3] },
      top_logprobs: [
        { '<0>': -1.5, '<1>': -9999 },
        { '<0>': -2.5, '<1>': -9999 },
      ],
    };
    expect((await llm.completions.create(how)).choices[0]?.logprobs).toEqual(logprobs);
    const chunks = await collect(await llm.completions.create({ ...how, stream: true }));
    expect(chunks.map(({ choices }) => choices[0]?.logprobs)).toEqual([null, null, logprobs]);
    expect((await llm.completions.create({ ...how, logprobs: 0 })).choices[0]?.logprobs).not.toHaveProperty(
      'top_logprobs',
    );
  });

  it('gives chunks', async () => {
    const how = { prompt: 'Once', max_tokens: 2, stream: true, stream_options: { include_usage: true } } as const;
    const chunk = (text: string, finish_reason: string | null = null) => ({
      ...{ ...head('cmpl'), object: 'text_completion', usage: null },
      choices: [{ index: 0, text, logprobs: null, finish_reason }],
    });
    expect(await collect(await llm.completions.create(how))).toEqual([
      ...[chunk('<0>'), chunk('<1>'), chunk('', 'length')],
      { ...chunk(''), choices: [], usage: usage(2) },
    ]);
  });

  it('takes one prompt, alone or in a list, and token ids', async () => {
    for (const prompt of [['Once'], [1, 2], [[1, 2]]]) await llm.completions.create({ prompt, max_tokens: 1 });
    expect(backend.starts.map(({ prompt }) => prompt)).toEqual(['Once', Uint32Array.of(1, 2), Uint32Array.of(1, 2)]);
  });

  it('left by its loop stops the computation', async () => {
    const stream = await llm.completions.create({ prompt: 'Once', stream: true });
    for await (const { choices } of stream) if (choices[0]!.text === '<1>') break;
    expect(backend.shown).toEqual([2]);
  });
});

describe('embeddings.create()', () => {
  beforeEach(() => {
    backend.answers.stats = async () => ({ ok: true, value: { model: { dim: 2 } } as never });
  });

  it('gives an embedding for each input, and counts their tokens', async () => {
    const one = await llm.embeddings.create({ input: 'four' });
    expectTypeOf(one).toEqualTypeOf<CreateEmbeddingResponse>();
    expect(one).toEqual({
      ...{ object: 'list', model: 'qsf', usage: { prompt_tokens: 4, total_tokens: 4 } },
      data: [{ object: 'embedding', index: 0, embedding: [4, 0.5] }],
    });
    const several = await llm.embeddings.create({
      input: ['a', 'bc'],
      model: 'm',
      encoding_format: 'float',
      user: 'u',
    });
    expect(several.data).toEqual([
      { object: 'embedding', index: 0, embedding: [1, 0.5] },
      { object: 'embedding', index: 1, embedding: [2, 0.5] },
    ]);
    expect(several).toMatchObject({ model: 'm', usage: { prompt_tokens: 3, total_tokens: 3 } });
    const ids = await llm.embeddings.create({ input: [[5, 6, 7], [8]], dimensions: 2 });
    expect(ids.data.map(({ embedding }) => embedding)).toEqual([
      [3, 0.5],
      [1, 0.5],
    ]);
    expect((await llm.embeddings.create({ input: [5, 6] })).usage.total_tokens).toBe(2);
  });

  it('gives base64 of the floats', async () => {
    const within = Float32Array.of(9, 4, 0.5).subarray(1);
    backend.answers.embed = async () => ({ ok: true, value: [within] });
    const { data } = await llm.embeddings.create({ input: 'four', encoding_format: 'base64' });
    expectTypeOf(data[0]!.embedding).toEqualTypeOf<string>();
    const bytes = Buffer.from(data[0]!.embedding, 'base64');
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.length]).toEqual([4, 0.5, 8]);
  });

  it('aborted rejects with the reason', async () => {
    backend.answers.embed = () => new Promise(() => undefined);
    const abort = new AbortController();
    const embedding = llm.embeddings.create({ input: 'a' }, { signal: abort.signal });
    await until(() => backend.calls.includes('embed'));
    abort.abort(new Error('enough'));
    await expect(embedding).rejects.toThrow('enough');
  });
});
