// Conversations and allowed texts: the checks of what callers give, and what the engine gets.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { AnswerPiece } from '../../web/src/boundary.gen.js';
import type { Batch, ChatRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { QSF } from '../../web/src/page/qsf.js';
import { chatRequest, generateRequest } from '../../web/src/page/requests.js';
import type { AnswerPart } from '../../web/src/answer-types.js';
import type { ResponseFormat } from '../../web/src/format-types.js';
import type { ChatOptions, GenerateOptions } from '../../web/src/types.js';
import { Generation } from '../../web/src/worker/generation.js';
import { Passes } from '../../web/src/worker/passes.js';
import { Runner } from '../../web/src/worker/runner.js';
import { turnIn } from './call.js';
import { FakeSource, fakeEngine } from './fake-engine.js';
import { installFakeWorker, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const hello = [{ role: 'user', content: 'Hello' }];

describe('chat() and render()', () => {
  let backend: Backend;
  let llm: QSF;
  beforeEach(async () => {
    backend = installFakeWorker();
    llm = await QSF.load('https://example.org/model.qsf');
  });
  afterEach(removeFakeWorker);

  it('pass messages, tools and variables as JSON', async () => {
    backend.will([]);
    const tools = [{ type: 'function', function: { name: 'f' } }];
    await llm.chat(hello, { tools, templateArgs: { enable_thinking: false }, stop: 'x', seed: 1 }).next();
    expect(backend.starts[0]).toMatchObject({ anew: true, stop: ['x'], seed: 1 });
    const values = JSON.stringify({ messages: hello, tools, add_generation_prompt: true });
    expect(backend.starts[0]!.prompt).toEqual({ template: '', values, more: '{"enable_thinking":false}' });
    expect(await llm.render(hello)).toBe(JSON.stringify({ messages: hello, add_generation_prompt: true }));
  });

  it('take a text as a message of the user', async () => {
    const values = JSON.stringify({ messages: hello, add_generation_prompt: true });
    backend.will(['Hi'], ['!']);
    expect(await llm.chat('Hello')).toBe('Hi!');
    expect(backend.starts[0]!.prompt).toEqual({ template: '', values, more: '' });
    expect(await llm.render('Hello')).toBe(values);
    backend.will(['Hi'], ['!']);
    const pieces: string[] = [];
    for await (const piece of llm.chat('Hello', { seed: 1 })) pieces.push(piece);
    expect(pieces).toEqual(['Hi', '!']);
  });

  it('work apart from their model', async () => {
    backend.will(['Hi']);
    const { chat } = llm;
    expect(await chat(hello)).toBe('Hi');
  });

  const answer: AnswerPiece[] = [
    { kind: 'thought', text: 'They ' },
    { kind: 'thought', text: 'ask.' },
    { kind: 'text', text: 'I look' },
    { kind: 'text', text: ' it up.' },
    { kind: 'call', text: 'weather' },
    { kind: 'arguments', text: '{"city":"Zürich","days":2}' },
    { kind: 'call', text: 'now' },
    { kind: 'arguments', text: '{}' },
  ];
  const args = { city: 'Zürich', days: 2 };

  it('yield the text for the user only, and the message for the next turn', async () => {
    backend.willAnswer(...answer);
    const stream = llm.chat(hello, { tools: [{ name: 'weather' }] });
    const pieces: string[] = [];
    for await (const piece of stream) pieces.push(piece);
    expect(pieces).toEqual(['I look', ' it up.']);
    const { message, ...rest } = await stream.result;
    expect(rest).toEqual(result);
    const id = expect.stringMatching(/^[0-9a-z]{9}$/) as string;
    expect(message).toEqual({
      role: 'assistant',
      content: 'I look it up.',
      reasoning_content: 'They ask.',
      tool_calls: [
        { id, type: 'function', function: { name: 'weather', arguments: args } },
        { id, type: 'function', function: { name: 'now', arguments: {} } },
      ],
    });
    expect(message.tool_calls![0]!.id).not.toBe(message.tool_calls![1]!.id);
    backend.willAnswer({ kind: 'text', text: 'Sunny.' });
    const next = llm.chat([...hello, message, { role: 'tool', tool_call_id: '1', content: 'sunny' }]);
    expect((await next.next()).value).toBe('Sunny.');
    expect(await next.next()).toMatchObject({
      done: true,
      value: { message: { role: 'assistant', content: 'Sunny.' } },
    });
    expect(JSON.parse((backend.starts[1]!.prompt as ChatRequest).values)).toMatchObject({
      messages: [{}, { tool_calls: [{ function: { arguments: args } }, {}] }, {}],
    });
  });

  it('yield all parts by parts()', async () => {
    backend.willAnswer(...answer);
    const stream = llm.chat(hello);
    const parts: AnswerPart[] = [];
    for await (const part of stream.parts()) parts.push(part);
    const { tool_calls: [first, second] = [] } = (await stream.result).message;
    expect(parts).toEqual([
      { type: 'thought', text: 'They ' },
      { type: 'thought', text: 'ask.' },
      { type: 'text', text: 'I look' },
      { type: 'text', text: ' it up.' },
      { type: 'call', id: first!.id, name: 'weather', arguments: args },
      { type: 'call', id: second!.id, name: 'now', arguments: {} },
    ]);
  });

  it.each(['text', 'parts'])('end with what was yielded when a loop over %s is left', async (which) => {
    backend.willAnswer(...answer);
    backend.answers.stop = async () => ({ ok: true, value: { ...result, end: 'cancelled' } });
    const stream = llm.chat(hello);
    for await (const part of which === 'text' ? stream : stream.parts())
      if (typeof part === 'string' || part.type === 'text') break;
    expect(backend.shown).toEqual([3]);
    const message = { role: 'assistant', content: 'I look', reasoning_content: 'They ask.' };
    expect(await stream.result).toMatchObject({ end: 'cancelled', message });
  });

  const cyclic: { role: string; self?: unknown } = { role: 'user' };
  cyclic.self = cyclic;
  it.each([
    ['no messages', [], {}, 'the messages are a list that is empty or has other values'],
    ['a number', 5, {}, 'the messages are 5; they must be a text, or a list'],
    ['null', null, {}, 'the messages are null'],
    ['null in place of options', 'Hello', null, 'the argument of chat() is null'],
    ['messages without a role', [{ content: 'x' }], {}, 'a list of objects with a role'],
    ['an answer at the end', [...hello, { role: 'assistant', content: 'x' }], {}, 'nothing to answer'],
    ['a cycle', [cyclic], {}, 'has no form in JSON'],
    ['continue', hello, { continue: true }, 'chat() has no option "continue"'],
    ['a misspelled option', hello, { templateArg: {} }, 'did you mean templateArgs?'],
    ['a template that is no text', hello, { template: 1 }, 'template is 1'],
    ['tools that are no list', hello, { tools: {} }, 'tools is'],
    ['variables that are no object', hello, { templateArgs: 'x' }, 'templateArgs is'],
    ['other messages', hello, { templateArgs: { messages: [] } }, 'cannot replace messages: they are the conversation'],
    ['other tools', hello, { templateArgs: { tools: [] } }, 'templateArgs cannot replace tools'],
    ['no beginning', hello, { templateArgs: { add_generation_prompt: false } }, 'replace add_generation_prompt: it'],
  ])('refuse %s', async (_, messages, options, sentence) => {
    const refused = { code: 'bad_argument', message: expect.stringContaining(sentence) as string };
    await expect(llm.chat(messages as never, options as never).next()).rejects.toMatchObject(refused);
    expect(backend.starts).toEqual([]);
  });

  it('refuse options of generations where there is none', async () => {
    await expect(llm.render(hello, { maxTokens: 3 } as never)).rejects.toMatchObject({ code: 'bad_argument' });
  });
});

describe('toolChoice and reasoningBudget', () => {
  const tools = [{ name: 'f' }];
  const held = (options: ChatOptions) => chatRequest('x', options).hold;

  it('hold nothing by default', () => {
    expect(held({})).toBeUndefined();
    expect(held({ tools, reasoningBudget: -1 })).toBeUndefined();
  });

  it('hold calls and thoughts', () => {
    expect(held({ reasoningBudget: 0 })).toEqual({ thought: 0, calls: undefined });
    expect(held({ tools, toolChoice: 'auto' })).toEqual({ thought: undefined, calls: { required: false, only: '' } });
    expect(held({ tools, toolChoice: 'required', reasoningBudget: 9 })).toEqual({
      ...{ thought: 9, calls: { required: true, only: '' } },
    });
    expect(held({ tools, toolChoice: { name: 'f' } })).toMatchObject({ calls: { required: true, only: 'f' } });
  });

  it('parallelToolCalls asks for one call', () => {
    const asked = (options: ChatOptions) => chatRequest('x', options).oneCall;
    expect(asked({ tools, parallelToolCalls: false })).toBe(true);
    for (const options of [{}, { parallelToolCalls: true }, { parallelToolCalls: undefined }])
      expect(chatRequest('x', { tools, ...options })).not.toHaveProperty('oneCall');
  });

  it.each<[unknown, string]>([
    [{ tools, parallelToolCalls: 0 }, 'parallelToolCalls is 0; it must be true or false'],
    [{ toolChoice: 'auto' }, 'toolChoice is given without tools'],
    [{ tools, toolChoice: 'f' }, 'toolChoice is "f"; it must be'],
    [{ tools, toolChoice: {} }, 'toolChoice is an object'],
    [{ tools, toolChoice: 'auto', responseFormat: { type: 'json_object' } }, 'are both given'],
    [{ reasoningBudget: -2 }, 'reasoningBudget is -2'],
    [{ reasoningBudget: 1.5 }, 'reasoningBudget is 1.5'],
  ])('%j are refused', (options, sentence) => {
    expect(() => chatRequest('x', options as ChatOptions)).toThrow(sentence);
  });
});

describe('responseFormat', () => {
  const schema = { type: 'integer' };
  it.each<[ResponseFormat, { kind: string; text: string }]>([
    [
      { type: 'json_schema', schema },
      { kind: 'json_schema', text: JSON.stringify(schema) },
    ],
    [
      { type: 'json_schema', json_schema: { name: 'n', schema } },
      { kind: 'json_schema', text: JSON.stringify(schema) },
    ],
    [
      { type: 'json_schema', schema: true },
      { kind: 'json_schema', text: 'true' },
    ],
    [{ type: 'json_object' }, { kind: 'json_schema', text: '{"type":"object"}' }],
    [
      { type: 'regex', pattern: 'a|b' },
      { kind: 'regex', text: 'a|b' },
    ],
    [
      { type: 'gbnf', grammar: 'root ::= "a"' },
      { kind: 'gbnf', text: 'root ::= "a"' },
    ],
  ])('%j becomes a grammar', (responseFormat, grammar) => {
    expect(generateRequest('x', { responseFormat }).grammar).toEqual(grammar);
  });

  it.each([
    [{ type: 'json' }, 'responseFormat.type is'],
    [{ type: 'json_schema' }, 'responseFormat.schema is'],
    [{ type: 'json_schema', json_schema: {} }, 'responseFormat.schema is'],
    [{ type: 'regex', grammar: 'x' }, 'responseFormat.pattern is'],
    [{ type: 'gbnf' }, 'responseFormat.grammar is'],
    ['json_object', 'responseFormat is'],
  ])('%j is refused', (responseFormat, sentence) => {
    expect(() => generateRequest('x', { responseFormat: responseFormat as never })).toThrow(sentence);
  });
});

describe('the engine', () => {
  it('gets the lists of sampling of each generation', () => {
    const { engine, instance } = fakeEngine();
    const start = (given: GenerateOptions) => {
      engine.start(generateRequest('x', given), 0);
    };
    start({ logitBias: { 5: -Infinity, 9: 1.5 }, samplers: ['top_k', 'xtc'], drySequenceBreakers: ['ä', '\n'] });
    expect(instance.lists).toEqual({
      biases: [
        [5, -Infinity],
        [9, 1.5],
      ],
      samplers: ['top_k', 'xtc'],
      breakers: ['ä', '\n'],
    });
    start({ samplers: [] });
    expect(instance.lists).toEqual({ biases: [], samplers: [], breakers: undefined });
    start({});
    expect(instance.lists).toEqual({ biases: [], samplers: undefined, breakers: undefined });
    expect(instance.text).toBe('x');
  });

  const options = { ...checkOptions(samplerOptions, {}), ...checkOptions(promptOptions, {}), stop: ['end'] };
  const chat = { template: 'T', values: '{"messages":[]}', more: '{}' };

  it('gets a conversation, its grammar and stop strings, and keeps the sequence', () => {
    const { engine, instance } = fakeEngine();
    const grammar = { kind: 'regex', text: 'ä' } as const;
    engine.start({ ...options, prompt: chat, grammar, anew: true }, 0);
    expect(instance.chat).toEqual(chat);
    expect(instance.grammar).toEqual(grammar);
    expect(instance.stops).toEqual(['end']);
    expect(instance.calls).toEqual(['start 0']);
    engine.start({ ...options, prompt: 'x', anew: true }, 0);
    expect(instance.grammar).toBeUndefined();
    expect(instance.calls.slice(1)).toEqual(['start 0']);
    expect(engine.render(chat)).toBe(chat.values);
  });

  it('gives the parts of an answer with its pieces, also of tokens without text and of its end', async () => {
    const { engine, instance } = fakeEngine();
    const parts: AnswerPiece[][] = [[], [{ kind: 'text', text: 'a' }], [], [{ kind: 'call', text: 'now' }]];
    const lastParts: AnswerPiece[] = [{ kind: 'text', text: ' ' }];
    instance.script = { piece: (n) => (n < 2 ? 'a' : ''), parts: (n) => parts[n]!, lastParts };
    const passes = new Passes(new Runner(engine, new FakeSource()));
    const generation = new Generation(engine, passes, turnIn(), {
      ...{ ...options, maxTokens: 4, seed: 1, prompt: chat, anew: true },
    });
    const all: Batch = { pieces: [], parts: [] };
    for (;;) {
      const batch = await generation.next();
      all.pieces.push(...batch.pieces);
      all.parts!.push(...batch.parts!);
      if (batch.result) break;
    }
    expect(all).toEqual({ pieces: ['a', 'a', '', ''], parts: [parts[0], parts[1], parts[3], lastParts] });
    const plain = new Generation(engine, passes, turnIn(), {
      ...{ ...options, maxTokens: 1, seed: 1, prompt: 'x', anew: true },
    });
    expect(await plain.next()).not.toHaveProperty('parts');
    plain.stop();
  });
});
