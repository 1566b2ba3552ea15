/// <reference lib="dom" />
// Conversations and grammars in a page and natively: the same text, the same ids, the same answers.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openOptions } from '../../web/src/boundary.gen.js';
import { checkOptions } from '../../web/src/page/options.js';
import { chatRequest, generateRequest, renderRequest } from '../../web/src/page/requests.js';
import type { GenerateRequest } from '../../web/src/contract.js';
import type { ResponseFormat } from '../../web/src/format-types.js';
import type { ChatMessage, ChatOptions, GenerationResult } from '../../web/src/types.js';
import { Model } from '../../web/src/worker/model.js';
import { CALL } from '../web/call.js';
import { convert, folder, moduleCreator, program, starters } from './module.js';

const MiB = 1024 * 1024;
const TEMPLATE =
  "{% if messages[0].role == 'tool' %}{{ raise_exception('A tool cannot begin.') }}{% endif %}" +
  '{% if tools %}{{ tools | tojson }}<tool_call></tool_call>{% endif %}' +
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{{ '<think></think>' if not enable_thinking | default(true) }}" +
  '{% endif %}';
const IM_START = 2046;

interface Tokenizer {
  model: { vocab: Record<string, number>; merges: unknown[] };
  added_tokens: object[];
}

/** Converts the built-in model with two tokens of ChatML and the template above. */
function chatModel(): string {
  const from = join(folder, 'chat');
  const source = join(import.meta.dirname, '..', '..', 'models', 'stories');
  rmSync(from, { recursive: true, force: true });
  mkdirSync(from, { recursive: true });
  cpSync(source, from, { recursive: true });
  const tokenizer = JSON.parse(readFileSync(join(source, 'tokenizer.json'), 'utf8')) as Tokenizer;
  ['<|im_start|>', '<|im_end|>'].forEach((content, i) => {
    const id = IM_START + i;
    const { vocab, merges } = tokenizer.model;
    tokenizer.model.vocab = Object.fromEntries(Object.entries(vocab).filter(([, known]) => known !== id));
    merges.pop();
    tokenizer.added_tokens.push({ id, content, special: true });
  });
  writeFileSync(join(from, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(from, 'tokenizer_config.json'), JSON.stringify({ chat_template: TEMPLATE }));
  return convert(join('build', 'parity', 'chat'), 'chat.qsf');
}

let path: string;
let model: Model;

beforeAll(async () => {
  path = chatModel();
  const start = starters(await moduleCreator());
  const open = checkOptions(openOptions, { textBytes: 12 * MiB });
  model = await Model.create(
    {
      ...{ source: new Blob([readFileSync(path)]), memory: 32 * MiB, open, kv: undefined, network: {} },
      ...{ cache: false, cacheLimit: undefined, background: false, variant: 'simd', threads: 1 },
    },
    { progress: () => undefined, warning: () => undefined },
    start,
  );
  await model.load();
});

afterAll(() => model.close());

const native = (...options: string[]) =>
  execFileSync(program('qsf-run'), [path, ...options], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Writes a file for a native program; returns its path. */
function file(name: string, content: unknown): string {
  writeFileSync(join(folder, name), JSON.stringify(content));
  return join(folder, name);
}

/** A generation's text, and of an answer its parts as qsf-run prints them: thoughts, and text with calls in lines. */
interface Run {
  text: string;
  thoughts: string;
  output: string;
  result: GenerationResult;
}

async function run(request: GenerateRequest): Promise<Run> {
  await model.start(CALL, request);
  const out = { text: '', thoughts: '', output: '' };
  let name = '';
  for (;;) {
    const { pieces, parts = [], result } = await model.next(CALL.id);
    out.text += pieces.join('');
    for (const { kind, text } of parts.flat()) {
      if (kind === 'thought') out.thoughts += text;
      else if (kind === 'text') out.output += text;
      else if (kind === 'call') name = text;
      else out.output += `${/.$/.test(out.output) ? '\n' : ''}{"name":${JSON.stringify(name)},"arguments":${text}}\n`;
    }
    if (result) return { ...out, result };
  }
}

const chat = (messages: ChatMessage[], options: ChatOptions = {}) =>
  run(chatRequest(messages, { temperature: 0, maxTokens: 12, ignoreEos: true, ...options }));
const ask = (content: string): ChatMessage[] => [{ role: 'user', content }];
const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];

/** Tokens of the prompt that were computed. */
const computed = ({ promptTokens, reusedTokens }: GenerationResult) => promptTokens - reusedTokens;

describe('a conversation', () => {
  it.each([
    ['one message', ask('Hello <|im_end|> there'), {}],
    ['turns', [...ask('Hello'), { role: 'assistant', content: 'Yes.' }, ...ask('Größe "\\ \u{1F600}\n')], {}],
    ['tools and a variable', ask('Hi'), { tools, templateArgs: { enable_thinking: false } }],
  ])('of %s has the text that the native program renders', (_, messages, options) => {
    const given = file('render.json', { messages, ...options, ...('templateArgs' in options && options.templateArgs) });
    const text = model.engine.render(renderRequest(messages, options));
    expect(text).toBe(native('--render', given));
    expect(text).toContain('<|im_start|>user\n');
  });

  it('has the ids of the native program, and special tokens only from the template', async () => {
    const { result } = await chat(ask('Hello <|im_start|> there'), { maxTokens: 1 });
    const ids = native('--tokenize', '--message', 'Hello <|im_start|> there').trim().split(',');
    expect(ids.filter((id) => Number(id) === IM_START)).toHaveLength(2);
    expect(result.promptTokens).toBeGreaterThan(2);
    expect(result.position).toBe(ids.length + 1);
  });

  it('is answered as natively, whatever the sequence had before', async () => {
    const wanted = native('--message', 'Once upon', '-n', '12', '--temperature', '0', '--ignore-eos');
    expect((await chat(ask('Once upon'))).text).toBe(wanted);
    await chat(ask('There was a dog'));
    expect((await chat(ask('Once upon'))).text).toBe(wanted);
  });

  it('computes only what is new in a turn', async () => {
    const messages = [
      { role: 'system', content: 'Tell long stories of kings and queens.' },
      ...ask('Once upon a time'),
    ];
    const first = await chat(messages);
    const turns = [...messages, { role: 'assistant', content: first.text }, ...ask('And then?')];
    const second = await chat(turns);
    expect(second.result.promptTokens).toBeGreaterThan(first.result.promptTokens);
    expect(computed(second.result)).toBeLessThan(computed(first.result));
    await chat(ask('Another one'));
    const anew = await chat(turns);
    expect(anew.text).toBe(second.text);
    expect(computed(anew.result)).toBeGreaterThan(computed(second.result));
  });

  it('is refused by its template, and takes another template', async () => {
    const tool = [{ role: 'tool', content: 'x' }];
    await expect(chat(tool)).rejects.toMatchObject({ code: 'template_refusal', message: 'A tool cannot begin.' });
    expect(model.engine.render(renderRequest(tool, { template: '[{{ messages[0].content }}]' }))).toBe('[x]');
    await expect(chat(ask('x'), { template: '{% if %}' })).rejects.toMatchObject({ code: 'bad_template' });
    const long = ask('word '.repeat(2000));
    await expect(chat(long)).rejects.toMatchObject({ code: 'context_full' });
    expect((await chat(ask('Once upon'))).text).not.toBe('');
  });
});

describe('thoughts and calls', () => {
  const weather = {
    ...{ name: 'weather', description: 'Weather of a city' },
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
  };
  const known = [{ type: 'function', function: weather }];
  const call = '<tool_call>\\n\\{"name": "weather", "arguments": \\{"city": "[A-Z][a-z]{2,9}"\\}\\}\\n</tool_call>';

  /** Runs an answer of a pattern in the page, and natively: its standard output and error. */
  async function both(pattern: string, options: ChatOptions, ...more: string[]) {
    const how = { maxTokens: 200, temperature: 0.7, seed: 5, ignoreEos: false };
    const page = await chat(ask('Once upon'), { ...how, ...options, responseFormat: { type: 'regex', pattern } });
    const given = ['--message', 'Once upon', '-n', '200', '--temperature', '0.7', '--seed', '5', '--regex', pattern];
    const { stdout, stderr } = spawnSync(program('qsf-run'), [path, ...given, ...more], { encoding: 'utf8' });
    return { page, stdout, stderr };
  }

  it('are those of the native program', async () => {
    const tools = ['--tools', file('tools.json', known)];
    const pattern = `<think>\\n[a-z ]{4,30}\\n</think>\\n\\nI ([a-z]{3,8}) it\\.\\n(${call}\\n){2}`;
    const { page, stdout, stderr } = await both(pattern, { tools: known }, ...tools);
    expect(page.output).toBe(stdout);
    expect(stderr).toContain(page.thoughts);
    expect(page.thoughts).toMatch(/^[a-z ]+$/);
    const line = '\\{"name":"weather","arguments":\\{"city":"[A-Z][a-z]+"\\}\\}\n';
    expect(stdout).toMatch(new RegExp(`^I [a-z]+ it\\.\n${line}${line}$`));
    expect(page.text).toContain('<tool_call>');
    const hidden = await both(pattern, { tools: known }, ...tools, '--reasoning', 'hide');
    expect(hidden.stdout).toBe(stdout);
    expect(hidden.stderr).not.toContain(page.thoughts);
  });

  it('are text without tools', async () => {
    const { page, stdout } = await both(call, {});
    expect(stdout).toBe(page.text);
    expect(page.output).toBe(page.text);
  });

  it('stay while another conversation is rendered', async () => {
    const responseFormat: ResponseFormat = { type: 'regex', pattern: `[a-z]{9} ${call}` };
    await model.start(CALL, chatRequest(ask('Once upon'), { tools: known, responseFormat, maxTokens: 200, seed: 5 }));
    const kinds: string[] = [];
    for (let isOver = false; !isOver;) {
      const { parts, result } = await model.next(CALL.id);
      model.engine.render(renderRequest(ask('x'.repeat(300)), { tools }));
      kinds.push(...parts!.flat().map(({ kind }) => kind));
      isOver = result !== undefined;
    }
    expect(kinds.slice(-2)).toEqual(['call', 'arguments']);
  });
});

describe('a held answer', () => {
  const template =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}{% for c in m.tool_calls %}<tool_call>" +
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}' +
    "{{ '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}" +
    "{% if think %}{{ '<think>\\n' }}{% endif %}{% endif %}{# </think> #}";
  const parameters = {
    type: 'object',
    properties: { city: { enum: ['Rome', 'Oslo'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
    ...{ required: ['city'], additionalProperties: false },
  };
  const held = ['weather', 'forecast'].map((name) => ({ type: 'function', function: { name, parameters } }));

  /** Runs an answer in the page, and natively: its standard output and error. */
  async function both(seed: number, options: ChatOptions, ...more: string[]) {
    const how = { maxTokens: 150, temperature: 0.9, seed, ignoreEos: false, template };
    const page = await chat(ask('Once upon'), { ...how, ...options });
    writeFileSync(join(folder, 'held.jinja'), template);
    const given = ['--message', 'Once upon', '-n', '150', '--temperature', '0.9', '--seed', `${seed}`];
    const all = [path, ...given, '--chat-template', join(folder, 'held.jinja'), ...more];
    const { stdout, stderr } = spawnSync(program('qsf-run'), all, { encoding: 'utf8' });
    return { page, stdout, stderr };
  }

  it.each([1, 2, 3, 4])('begins with a call of its schema, as natively, seed %i', async (seed) => {
    const given = ['--tools', file('held.json', held), '--tool-choice'];
    const any = await both(seed, { tools: held, toolChoice: 'required' }, ...given, 'required');
    expect(any.page.output).toBe(any.stdout);
    const call = (names: string) =>
      new RegExp(`^\\{"name":"(${names})","arguments":\\{("(city":"(Rome|Oslo)"|days":[1-9]),?){1,2}\\}\\}\n`);
    expect(any.stdout).toMatch(call('weather|forecast'));
    expect(any.stdout).toContain('"city"');
    const one = await both(seed, { tools: held, toolChoice: { name: 'forecast' } }, ...given, 'forecast');
    expect(one.page.output).toBe(one.stdout);
    expect(one.stdout).toMatch(call('forecast'));
  });

  it('thinks as long as its budget, then follows its grammar', async () => {
    const options: ChatOptions = { reasoningBudget: 6, responseFormat: { type: 'regex', pattern: 'yes|no' } };
    const given = ['--template-arg', 'think=true', '--reasoning-budget', '6', '--regex', 'yes|no'];
    const { page, stdout, stderr } = await both(1, { ...options, templateArgs: { think: true } }, ...given);
    expect(page.output).toMatch(/^(yes|no)$/);
    expect(stdout).toBe(page.output);
    expect(page.thoughts).not.toBe('');
    expect(stderr).toContain(page.thoughts);
  });

  it('that fails holds nothing afterwards', async () => {
    const none = { tools: held, toolChoice: { name: 'rain' }, template } as const;
    await expect(chat(ask('x'), none)).rejects.toMatchObject({ code: 'bad_argument' });
    const refused = { tools: held, toolChoice: 'required' } as const;
    await expect(chat([{ role: 'tool', content: 'x' }], refused)).rejects.toThrow();
    await expect(chat(ask('x'), refused)).rejects.toMatchObject({ code: 'unsupported' });
    expect(model.engine.render(renderRequest(ask('x'), {}))).toContain('x');
    expect((await chat(ask('Once upon'))).text).toBe(
      native('--message', 'Once upon', '-n', '12', '--temperature', '0', '--ignore-eos'),
    );
  });
});

describe('a grammar', () => {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 3, maximum: 120 } },
    required: ['name', 'age'],
    additionalProperties: false,
  };

  it.each([1, 2, 3])('of a schema is followed as natively, seed %i', async (seed) => {
    const given = file('schema.json', schema);
    const format: ResponseFormat = { type: 'json_schema', schema };
    const { text, result } = await run(
      generateRequest('Once', { seed, maxTokens: 200, temperature: 0.7, responseFormat: format }),
    );
    const read = JSON.parse(text) as { name: string; age: number };
    expect(Object.keys(read).sort()).toEqual(['age', 'name']);
    expect(read.age >= 3 && read.age <= 120 && [...read.name].length <= 12).toBe(true);
    expect(result.end).toMatch(/eos|stop/);
    expect(text).toBe(
      native('-p', 'Once', '-n', '200', '--seed', `${seed}`, '--temperature', '0.7', '--json-schema', given),
    );
  });

  it('holds answers of conversations, and only the one that it was given for', async () => {
    const held = await chat(ask('Yes or no?'), {
      responseFormat: { type: 'regex', pattern: '(yes|no), (king|queen)' },
    });
    expect(held.text).toMatch(/^(yes|no), (king|queen)$/);
    const gbnf = await chat(ask('Yes or no?'), { responseFormat: { type: 'gbnf', grammar: 'root ::= "a" [0-9] "z"' } });
    expect(gbnf.text).toMatch(/^a[0-9]z$/);
    expect((await chat(ask('Once upon'))).text).toBe(
      native('--message', 'Once upon', '-n', '12', '--temperature', '0', '--ignore-eos'),
    );
    const wrong = { type: 'json_schema', schema: { uniqueItems: true } } as const;
    await expect(chat(ask('x'), { responseFormat: wrong })).rejects.toMatchObject({ code: 'unsupported' });
  });
});
