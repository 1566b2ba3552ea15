// Conversations and allowed texts: the checks of what callers give, and what the engine gets.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import { checkOptions } from '../../web/src/page/options.js';
import { QSF } from '../../web/src/page/qsf.js';
import { generateRequest } from '../../web/src/page/requests.js';
import type { GenerateOptions, ResponseFormat } from '../../web/src/types.js';
import { fakeEngine } from './fake-engine.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';
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
    expect(backend.starts[0]).toMatchObject({ continue: false, stop: ['x'], seed: 1 });
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

  const cyclic: { role: string; self?: unknown } = { role: 'user' };
  cyclic.self = cyclic;
  it.each([
    ['no messages', [], {}, 'The messages are a list that is empty or has other values'],
    ['a number', 5, {}, 'The messages are 5; they must be a text, or a list'],
    ['null', null, {}, 'The messages are null'],
    ['null in place of options', 'Hello', null, 'The argument of chat() is null'],
    ['messages without a role', [{ content: 'x' }], {}, 'a list of objects with a role'],
    ['an answer at the end', [...hello, { role: 'assistant', content: 'x' }], {}, 'nothing to answer'],
    ['a cycle', [cyclic], {}, 'has no form in JSON'],
    ['continue', hello, { continue: true }, 'chat() has no option "continue"'],
    ['a misspelled option', hello, { templateArg: {} }, 'did you mean templateArgs?'],
    ['a template that is no text', hello, { template: 1 }, 'template is 1'],
    ['tools that are no list', hello, { tools: {} }, 'tools is'],
    ['variables that are no object', hello, { templateArgs: 'x' }, 'templateArgs is'],
  ])('refuse %s', async (_, messages, options, sentence) => {
    const refused = { code: 'bad_argument', message: expect.stringContaining(sentence) as string };
    await expect(llm.chat(messages as never, options as never).next()).rejects.toMatchObject(refused);
    expect(backend.starts).toEqual([]);
  });

  it('refuse options of generations where there is none', async () => {
    await expect(llm.render(hello, { maxTokens: 3 } as never)).rejects.toMatchObject({ code: 'bad_argument' });
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
      engine.start(generateRequest('x', given));
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
    engine.start({ ...options, prompt: chat, grammar, continue: false });
    expect(instance.chat).toEqual(chat);
    expect(instance.grammar).toEqual(grammar);
    expect(instance.stops).toEqual(['end']);
    expect(instance.calls).toEqual(['start 0']);
    engine.start({ ...options, prompt: 'x', continue: false });
    expect(instance.grammar).toBeUndefined();
    expect(instance.calls.slice(1)).toEqual(['rewind 0 0', 'start 0']);
    expect(engine.render(chat)).toBe(chat.values);
  });
});
