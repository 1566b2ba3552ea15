// qsf/ai-sdk, with the published AI SDK.
import { getEventListeners } from 'node:events';

import type { EmbeddingModelV4, LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import {
  Output,
  UnsupportedFunctionalityError,
  embed,
  embedMany,
  generateText,
  isStepCount,
  streamText,
  tool,
} from 'ai';
import * as version6 from 'ai-6';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

import { embeddingModel, languageModel } from '../../web/src/ai-sdk.js';
import { removeFakeWorker } from '../web/fake-worker.js';
import { ANSWER, fakeModel } from './model.js';
import type { Fake } from './model.js';

let fake: Fake;
/** The published types take the models. */
let model: LanguageModelV4;
let embedding: EmbeddingModelV4;
beforeEach(async () => {
  fake = await fakeModel();
  model = languageModel(fake.llm);
  embedding = embeddingModel(fake.llm);
});
afterEach(() => {
  vi.restoreAllMocks();
  removeFakeWorker();
});

const weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ in: city, is: 'sunny' }),
});
const quiet = { maxRetries: 0 };

describe('generateText()', () => {
  it('gives text, usage and the reason for the end', async () => {
    const { text, usage, finishReason, warnings } = await generateText({
      ...{ model, prompt: 'Hello', maxOutputTokens: 3, ...quiet },
    });
    expect({ text, finishReason, warnings }).toEqual({ text: '<0><1><2>', finishReason: 'length', warnings: [] });
    expect(usage).toMatchObject({ inputTokens: 7, outputTokens: 3, totalTokens: 10 });
    expect(fake.values().messages).toEqual([{ role: 'user', content: 'Hello' }]);
  });

  it('passes settings on, with those of the provider', async () => {
    await generateText({
      ...{ model, prompt: 'Hello', temperature: 0.5, topP: 0.25, topK: 3, seed: 42, maxOutputTokens: 2, ...quiet },
      ...{ presencePenalty: 0.5, frequencyPenalty: -1, stopSequences: ['x'], reasoning: 'none' },
      providerOptions: { qsf: { minP: 0.125, templateArgs: { a: 1 } } },
    });
    expect(fake.backend.starts[0]).toMatchObject({
      ...{ temperature: 0.5, topP: 0.25, topK: 3, seed: 42, maxTokens: 2, minP: 0.125, stop: ['x'] },
      ...{ presencePenalty: 0.5, frequencyPenalty: -1 },
    });
    expect(fake.instance.chat!.more).toBe('{"reasoning_effort":"none","enable_thinking":false,"a":1}');
  });

  it('gives thoughts, and runs tools until the answer', async () => {
    fake.answers(ANSWER);
    const first = fake.backend.answers.start;
    let rounds = 0;
    fake.backend.answers.start = () => {
      if (rounds++ === 1) fake.says('Sunny.');
      return first();
    };
    const result = await generateText({
      ...{ model, prompt: 'Weather?', tools: { weather }, stopWhen: isStepCount(3), ...quiet },
    });
    expect(result.text).toBe('Sunny.');
    expect(result.steps[0]).toMatchObject({
      ...{ text: 'I look it up.', reasoningText: 'They ask.', finishReason: 'tool-calls' },
      toolCalls: [{ toolName: 'weather', input: { city: 'Zürich' } }],
      toolResults: [{ output: { in: 'Zürich', is: 'sunny' } }],
    });
    const { messages, tools } = fake.values();
    const { id } = (messages[1]!.tool_calls as { id: string }[])[0]!;
    expect(messages.slice(1)).toMatchObject([
      {
        ...{ role: 'assistant', content: 'I look it up.', reasoning_content: 'They ask.' },
        tool_calls: [{ type: 'function', function: { name: 'weather', arguments: { city: 'Zürich' } } }],
      },
      { role: 'tool', name: 'weather', tool_call_id: id, content: '{"in":"Zürich","is":"sunny"}' },
    ]);
    expect(tools).toMatchObject([
      {
        type: 'function',
        function: { name: 'weather', description: 'The weather of a city', parameters: { type: 'object' } },
      },
    ]);
  });

  it('gives values of a schema, which the engine holds the answer to', async () => {
    fake.says('{"age":5}');
    const output = Output.object({ schema: z.object({ age: z.number() }) });
    expect((await generateText({ model, prompt: 'Age?', output, ...quiet })).output).toEqual({ age: 5 });
    const { kind, text } = fake.instance.grammar!;
    expect(kind).toBe('json_schema');
    expect(JSON.parse(text)).toMatchObject({ type: 'object', required: ['age'] });
  });

  it('warns of what it does not have', async () => {
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }];
    const own = { type: 'function' as const, name: 'f', inputSchema: { type: 'object' as const } };
    const foreign = { type: 'provider' as const, id: 'other.search' as const, name: 'search', args: {} };
    const warned = async (more: Partial<LanguageModelV4CallOptions>) =>
      (await model.doGenerate({ prompt, maxOutputTokens: 1, ...more })).warnings;
    expect(await warned({ tools: [own] })).toEqual([]);
    expect(await warned({ tools: [own, foreign] })).toMatchObject([
      { type: 'unsupported', feature: 'provider tool search' },
    ]);
    const format = { tools: [own], responseFormat: { type: 'json' as const } };
    expect(await warned(format)).toMatchObject([
      { type: 'compatibility', details: expect.stringContaining('calls no tool') as string },
    ]);
    expect(fake.instance.held).toMatchObject({ calls: false });
    expect(await warned({ ...format, toolChoice: { type: 'required' } })).toMatchObject([
      { type: 'compatibility', details: expect.stringContaining('follows no format') as string },
    ]);
    expect(fake.instance.held).toMatchObject({ calls: true, required: true });
    expect(fake.instance.grammar).toBeUndefined();
  });

  it('holds calls as toolChoice and strict tools ask', async () => {
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }];
    const f = { type: 'function' as const, name: 'f', inputSchema: { type: 'object' as const } };
    const tools = [f, { ...f, name: 'g' }];
    const held = async (more: Partial<LanguageModelV4CallOptions>) => {
      expect((await model.doGenerate({ prompt, maxOutputTokens: 1, tools, ...more })).warnings).toEqual([]);
      return fake.instance.held;
    };
    const free = { thought: 0xffffffff, calls: false, required: false, only: '' };
    expect(await held({})).toEqual(free);
    expect(await held({ toolChoice: { type: 'auto' } })).toEqual(free);
    expect(await held({ tools: [{ ...f, strict: true }] })).toEqual({ ...free, calls: true });
    expect(await held({ toolChoice: { type: 'required' } })).toEqual({ ...free, calls: true, required: true });
    const named = { toolChoice: { type: 'tool' as const, toolName: 'g' } };
    expect(await held(named)).toEqual({ ...free, calls: true, required: true, only: 'g' });
    expect(fake.values().tools).toMatchObject([{ function: { name: 'f' } }, { function: { name: 'g' } }]);
    expect(await held({ providerOptions: { qsf: { reasoningBudget: 7 } } })).toEqual({ ...free, thought: 7 });
    await held({ providerOptions: { qsf: { parallelToolCalls: false } } });
    expect(fake.backend.starts.at(-1)).toMatchObject({ oneCall: true });
    expect(await held({ toolChoice: { type: 'none' } })).toEqual(free);
    expect(fake.values()).not.toHaveProperty('tools');
  });

  it('refuses images by the error of the SDK', async () => {
    const image = { type: 'file' as const, mediaType: 'image/png', data: new Uint8Array([1]) };
    const asked = generateText({ model, messages: [{ role: 'user', content: [image] }], ...quiet });
    const error: unknown = await asked.catch((caught: unknown) => caught);
    expect(UnsupportedFunctionalityError.isInstance(error)).toBe(true);
  });

  it("rejects with the engine's errors", async () => {
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    const asked = generateText({ model, prompt: 'Hello', ...quiet });
    await expect(asked).rejects.toMatchObject({ name: 'QSFError', code: 'context_full' });
  });

  it('ends by an abort and frees the model', async () => {
    fake.hold();
    const abort = new AbortController();
    const asked = generateText({ model, prompt: 'Hello', abortSignal: abort.signal, ...quiet });
    const reason = new Error('enough');
    await Promise.all([expect(asked).rejects.toThrow('enough'), fake.waits().then(() => abort.abort(reason))]);
    fake.release();
    expect((await generateText({ model, prompt: 'Hello', maxOutputTokens: 1, ...quiet })).text).toBe('<0>');
  });

  it('takes turns', async () => {
    const ask = () => generateText({ model, prompt: 'Hello', maxOutputTokens: 2, ...quiet });
    expect((await Promise.all([ask(), ask(), ask()])).map(({ text }) => text)).toEqual(Array(3).fill('<0><1>'));
  });
});

describe('streamText()', () => {
  it('gives text in pieces, and the end', async () => {
    const { textStream, finishReason, usage } = streamText({ model, prompt: 'Hello', maxOutputTokens: 3, ...quiet });
    const pieces = [];
    for await (const piece of textStream) pieces.push(piece);
    expect(pieces).toEqual(['<0>', '<1>', '<2>']);
    expect(await finishReason).toBe('length');
    expect(await usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
  });

  it('gives thoughts and calls as parts', async () => {
    fake.answers(ANSWER);
    const result = streamText({ model, prompt: 'Hello', tools: { weather }, ...quiet });
    await result.consumeStream();
    expect(await result.reasoningText).toBe('They ask.');
    expect(await result.text).toBe('I look it up.');
    expect(await result.toolCalls).toMatchObject([{ toolName: 'weather', input: { city: 'Zürich' } }]);
    expect(await result.toolResults).toMatchObject([{ output: { is: 'sunny' } }]);
  });

  it('gives each part of the specification in its order', async () => {
    fake.answers(ANSWER);
    // A page over http has none.
    const randomUUID = vi.spyOn(crypto, 'randomUUID');
    const { signal } = new AbortController();
    const { stream } = await model.doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }],
      abortSignal: signal,
    });
    const types = [];
    for await (const part of stream) types.push(part.type);
    expect(randomUUID).not.toHaveBeenCalled();
    await expect.poll(() => getEventListeners(signal, 'abort')).toEqual([]);
    expect(types).toEqual([
      ...['stream-start', 'response-metadata', 'reasoning-start', 'reasoning-delta', 'reasoning-delta'],
      ...['reasoning-end', 'text-start', 'text-delta', 'text-delta', 'text-end'],
      ...['tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call', 'finish'],
    ]);
  });

  it('reports errors before and after the first piece', async () => {
    const seen = async () => {
      const errors: unknown[] = [];
      const result = streamText({
        ...{ model, prompt: 'Hello', maxOutputTokens: 9, ...quiet },
        onError: ({ error }) => void errors.push(error),
      });
      await result.consumeStream();
      return errors;
    };
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    expect(await seen()).toMatchObject([{ code: 'context_full' }]);
    fake.instance.refuse = {};
    fake.instance.script = { fails: { before: 2, error: { code: 'not_finite', sentence: 'No numbers.' } } };
    expect(await seen()).toMatchObject([{ code: 'not_finite' }]);
  });

  it('ends by an abort', async () => {
    const abort = new AbortController();
    const types: string[] = [];
    const { fullStream } = streamText({ model, prompt: 'Hello', abortSignal: abort.signal, ...quiet });
    for await (const part of fullStream) {
      types.push(part.type);
      if (part.type === 'text-delta') abort.abort();
    }
    expect(types.at(-1)).toBe('abort');
    expect((await generateText({ model, prompt: 'Hello', maxOutputTokens: 1, ...quiet })).text).toBe('<0>');
  });
});

describe('embed() and embedMany()', () => {
  it('give the embeddings of texts', async () => {
    const one = await embed({ model: embedding, value: 'Hello', ...quiet });
    expect(one).toMatchObject({ embedding: [5, 0.5], usage: { tokens: 5 } });
    const { embeddings, usage } = await embedMany({ model: embedding, values: ['Hello', 'a'], ...quiet });
    expect(embeddings).toEqual([
      [5, 0.5],
      [1, 0.5],
    ]);
    expect(usage).toEqual({ tokens: 6 });
    expect(fake.backend.embeds).toHaveLength(2);
  });

  it('end by an abort', async () => {
    const asked = embed({
      model: embedding,
      value: 'a',
      abortSignal: AbortSignal.abort(new Error('enough')),
      ...quiet,
    });
    await expect(asked).rejects.toThrow('enough');
  });
});

describe("version 6 of the SDK, by the specification 'v3'", () => {
  it('has texts, tools, structured output and embeddings', async () => {
    const model = languageModel(fake.llm, { specificationVersion: 'v3' });
    const embedding = embeddingModel(fake.llm, { specificationVersion: 'v3' });
    const how = { model, prompt: 'Hello', ...quiet };
    fake.answers(ANSWER);
    const execute = (input: unknown) => ({ input, is: 'sunny' });
    const asked = await version6.generateText({
      ...how,
      tools: { weather: version6.tool({ inputSchema: z.object({ city: z.string() }), execute }) },
    });
    expect(asked).toMatchObject({ text: 'I look it up.', reasoningText: 'They ask.', finishReason: 'tool-calls' });
    expect(asked.toolResults).toMatchObject([{ output: { input: { city: 'Zürich' }, is: 'sunny' } }]);
    fake.says('{"age":3}');
    const output = version6.Output.object({ schema: z.object({ age: z.number() }) });
    expect((await version6.generateText({ ...how, output })).output).toEqual({ age: 3 });
    fake.says('Hello');
    expect(await version6.streamText(how).text).toBe('Hello');
    const { embeddings } = await version6.embedMany({ model: embedding, values: ['Hello', 'a'], ...quiet });
    expect(embeddings).toHaveLength(2);
  });

  it('is none of the other specifications', () => {
    const asked = () => languageModel(fake.llm, { specificationVersion: 'v2' as 'v3' });
    expect(asked).toThrow('specificationVersion is "v2"; it must be one of v3, v4');
  });
});
