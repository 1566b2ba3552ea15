// What OpenAI's shapes refuse, by which name and with which error.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { ChatCompletionCreateParams } from '../../web/src/openai-types.js';
import { QSF } from '../../web/src/page/qsf.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const messages = [{ role: 'user', content: 'Hello' }];

let backend: Backend;
let llm: QSF;
beforeEach(async () => {
  backend = installFakeWorker();
  llm = await QSF.load('https://example.org/model.qsf');
  backend.calls.length = 0;
});
afterEach(removeFakeWorker);

const tools = [{ type: 'function', function: { name: 'f' } }];

describe('chat.completions.create()', () => {
  const create = (more: object) => llm.chat.completions.create({ messages, ...more } as ChatCompletionCreateParams);

  it.each<[object, string]>([
    [{ audio: { voice: 'a' } }, 'audio is an object, which this package does not have; it must be omitted'],
    [{ modalities: ['text', 'audio'] }, 'modalities is a list'],
    [{ tool_choice: 'always' }, 'tool_choice is "always"'],
    [{ tool_choice: { type: 'custom', custom: { name: 'f' } } }, 'tool_choice is an object'],
    [{ tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0].type is "custom"'],
    [{ tools: [null] }, 'tools[0].type is undefined'],
    [{ functions: [] }, 'functions is a list'],
    [{ function_call: 'none' }, 'function_call is "none"'],
    [{ prediction: { type: 'content', content: 'x' } }, 'prediction is an object'],
    [{ web_search_options: {} }, 'web_search_options is an object'],
    [{ store: true }, 'store is true'],
    [{ service_tier: 'flex' }, 'service_tier is "flex"'],
    [{ verbosity: 'low' }, 'verbosity is "low"'],
    [{ best_of: 2 }, 'best_of is 2'],
    [{ stream: true, stream_options: { include_obfuscation: true } }, 'stream_options.include_obfuscation is true'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0].type is "image_url"'],
    [{ messages: [{ role: 'assistant', audio: { id: 'a' } }] }, 'messages[0].audio is an object'],
    [{ messages: [{ role: 'assistant', tool_calls: [{ type: 'custom' }] }] }, 'messages[0].tool_calls[0].type is "cus'],
  ])('refuses %o by its name', async (more, sentence) => {
    const refused = { name: 'QSFError', code: 'unsupported', message: expect.stringContaining(sentence) as string };
    await expect(create(more)).rejects.toMatchObject(refused);
    expect(backend.calls).toEqual([]);
  });

  it.each<[unknown, string]>([
    [null, 'the argument of chat.completions.create() is null; it must be an object'],
    [undefined, 'chat.completions.create() must be given an object'],
    [{}, 'messages is undefined; it must be a list of messages'],
    [{ messages: 'Hello' }, 'messages is a string; it must be a list of messages'],
    [{ messages: [null] }, 'messages[0] is null; it must be an object with a role'],
    [{ messages: [{ content: 'x' }] }, 'messages[0].role is undefined'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages[0].content is 5'],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text is undefined'],
    [
      { messages: [{ role: 'assistant', tool_calls: [{ type: 'function' }] }, ...messages] },
      'messages[0].tool_calls[0].function.name is undefined; it must be a text',
    ],
    [{ messages, tools: [{ type: 'function' }] }, 'tools[0].function.name is undefined; it must be a text'],
    [{ messages: [] }, 'the messages are a list that is empty'],
    [{ messages: [...messages, { role: 'assistant', content: 'x' }] }, 'nothing to answer'],
    [{ messages, maxTokens: 3 }, 'chat.completions.create() has no option "maxTokens"; did you mean max_tokens?'],
    [{ messages, temperature: -1 }, 'temperature is -1; it must be 0 to 3.4e+38'],
    [{ messages, top_p: 0 }, 'top_p is 0; it must be above 0 and at most 1'],
    [{ messages, max_completion_tokens: 1.5 }, 'max_completion_tokens is 1.5; it must be a whole number'],
    [{ messages, max_tokens: 5, max_completion_tokens: 6 }, 'max_completion_tokens is 6, but max_tokens is 5'],
    [{ messages, tool_choice: 'required' }, 'tool_choice asks for a call, and there are no tools'],
    [{ messages, tools, tool_choice: 'required', response_format: { type: 'json_object' } }, 'give one of them'],
    [{ messages, reasoning_budget: -2 }, 'reasoning_budget is -2; it must be a whole number from -1'],
    [{ messages, seed: 'x' }, 'seed is "x"'],
    [{ messages, n: 0 }, 'n is 0; it must be a whole number from 1 to 128'],
    [{ messages, n: '1' }, 'n is "1"; it must be a whole number from 1 to 128'],
    [{ messages, presence_penalty: 'x' }, 'presence_penalty is "x"'],
    [{ messages, frequency_penalty: Infinity }, 'frequency_penalty is Infinity'],
    [{ messages, logit_bias: [1] }, 'logit_bias is a list or a Map; it must be an object with token ids as names'],
    [{ messages, logit_bias: { a: 5 } }, 'logit_bias has "a": 5; it must have a number or -Infinity for each token id'],
    [{ messages, stop: 5 }, 'stop is 5'],
    [{ messages, model: 5 }, 'model is 5; it must be a text'],
    [{ messages, stream: 'yes' }, 'stream is "yes"; it must be true or false'],
    [{ messages, stream_options: { include_usage: true } }, 'stream_options is given without stream: true'],
    [{ messages, stream: true, stream_options: 5 }, 'the argument of stream_options is 5'],
    [{ messages, stream: true, stream_options: { usage: true } }, 'stream_options has no option "usage"'],
    [{ messages, stream: true, stream_options: { include_usage: 1 } }, 'stream_options.include_usage is 1'],
    [{ messages, reasoning_effort: 5 }, 'reasoning_effort is 5'],
    [{ messages, tools: {} }, 'tools is an object'],
    [{ messages, chat_template: 5 }, 'template is 5'],
    [{ messages, chat_template_kwargs: 'x' }, 'chat_template_kwargs is "x"; it must be an object'],
    [{ messages, response_format: 'json' }, 'responseFormat is "json"'],
    [{ messages, response_format: { type: 'xml' } }, 'responseFormat.type is'],
    [{ messages, stream: true, messages_: 1 }, 'did you mean messages?'],
    [{ messages: [], stream: true }, 'the messages are a list that is empty'],
  ])('refuses %o, also as a stream that nobody has read', async (params, sentence) => {
    const creating = llm.chat.completions.create(params as never);
    await expect(creating).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    expect(backend.calls).toEqual([]);
  });

  it.each<[unknown, string]>([
    [null, 'the argument of chat.completions.create() is null'],
    [{ signal: 5 }, 'signal is 5; it must be an AbortSignal'],
    [{ timeout: 5 }, 'chat.completions.create() has no option "timeout"'],
  ])('refuses %o as its second argument', async (how, sentence) => {
    await expect(llm.chat.completions.create({ messages }, how as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
  });
});

describe('completions.create()', () => {
  it.each<[unknown, string, string]>([
    [{ prompt: ['a', 'b'] }, 'unsupported', 'prompt is a list of 2; it must be one text, or token ids'],
    [{ prompt: 'a', echo: true }, 'unsupported', 'echo is true'],
    [{ prompt: 'a', suffix: 'b' }, 'unsupported', 'suffix is "b"'],
    [{ prompt: 'a', logprobs: 21 }, 'bad_argument', 'logprobs is 21; it must be a whole number from 0 to 20'],
    [{ prompt: 'a', logprobs: true }, 'bad_argument', 'logprobs is true'],
    [{ prompt: 'a', best_of: 3 }, 'unsupported', 'best_of is 3'],
    [{}, 'bad_argument', 'prompt is undefined; it must be a text, token ids, or a list of these'],
    [{ prompt: null }, 'bad_argument', 'prompt is undefined'],
    [{ prompt: [] }, 'bad_argument', 'prompt is a list'],
    [{ prompt: [[-1]] }, 'bad_token', '-1 is not a token id'],
    [{ prompt: 'a', messages }, 'bad_argument', 'completions.create() has no option "messages"'],
    [null, 'bad_argument', 'the argument of completions.create() is null'],
  ])('refuses %o', async (params, code, sentence) => {
    await expect(llm.completions.create(params as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code, message: expect.stringContaining(sentence) as string },
    });
    expect(backend.calls).toEqual([]);
  });
});

describe('embeddings.create()', () => {
  beforeEach(() => {
    backend.answers.stats = async () => ({ ok: true, value: { model: { dim: 2 } } as never });
  });

  it.each<[unknown, string, string]>([
    [
      { input: 'a', dimensions: 1 },
      'unsupported',
      'dimensions is 1, which this package does not have; it must be 2 or',
    ],
    [
      { input: 'a', encoding_format: 'int8' },
      'bad_argument',
      'encoding_format is "int8"; it must be one of float, base64',
    ],
    [
      { input: [] },
      'bad_argument',
      'input is a list; it must be a text, token ids, or a list of these that is not empty',
    ],
    [{}, 'bad_argument', 'input is undefined'],
    [{ input: [{}] }, 'bad_argument', 'it must be text or token ids'],
    [{ input: 'a', n: 1 }, 'bad_argument', 'embeddings.create() has no option "n"'],
    [null, 'bad_argument', 'the argument of embeddings.create() is null'],
  ])('refuses %o', async (params, code, sentence) => {
    await expect(llm.embeddings.create(params as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code, message: expect.stringContaining(sentence) as string },
    });
    expect(backend.embeds).toEqual([]);
  });
});
