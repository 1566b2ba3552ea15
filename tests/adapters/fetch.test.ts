// qsf/fetch, with the published client of OpenAI's interface.
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { openaiFetch } from '../../web/src/fetch.js';
import { failure, removeFakeWorker } from '../web/fake-worker.js';
import { ANSWER, fakeModel } from './model.js';
import type { Fake } from './model.js';

const baseURL = 'https://page.test/v1';
const messages = [{ role: 'user' as const, content: 'Hello' }];
const model = 'local';

let fake: Fake;
let client: OpenAI;
beforeEach(async () => {
  fake = await fakeModel();
  client = new OpenAI({ apiKey: '-', baseURL, fetch: openaiFetch(fake.llm), maxRetries: 0 });
});
afterEach(removeFakeWorker);

const create = (more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {}) =>
  client.chat.completions.create({ model, messages, max_tokens: 3, ...more });
const streamed = (more: Partial<OpenAI.ChatCompletionCreateParamsStreaming> = {}) =>
  client.chat.completions.create({ model, messages, max_tokens: 3, ...more, stream: true });

async function texts(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<string[]> {
  const all: string[] = [];
  for await (const { choices } of stream) {
    const text = choices[0]?.delta.content ?? '';
    if (text !== '') all.push(text);
  }
  return all;
}

describe('the client of OpenAI', () => {
  it('gets a whole answer', async () => {
    const answer = await create();
    expect(answer).toMatchObject({ object: 'chat.completion', model, usage: { prompt_tokens: 7, total_tokens: 10 } });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '<0><1><2>' } });
  });

  it('gets a stream, with its usage', async () => {
    expect(await texts(await streamed())).toEqual(['<0>', '<1>', '<2>']);
    const last = [];
    for await (const { usage } of await streamed({ stream_options: { include_usage: true } })) last.push(usage);
    expect(last.at(-1)).toMatchObject({ completion_tokens: 3 });
  });

  it('gets thoughts and calls, whole and by its own collector of chunks', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: {} } }];
    const call = { type: 'function', function: { name: 'weather', arguments: '{"city":"Zürich"}' } };
    const expected = { finish_reason: 'tool_calls', message: { content: 'I look it up.', tool_calls: [call] } };
    fake.answers(ANSWER);
    const { choices } = await create({ tools, max_tokens: 9 });
    expect(choices[0]).toMatchObject(expected);
    expect(choices[0]!.message).toMatchObject({ reasoning_content: 'They ask.' });
    expect(fake.values().tools).toEqual(tools);
    fake.answers(ANSWER);
    const collected = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
    expect(collected.choices[0]).toMatchObject(expected);
  });

  it('continues texts', async () => {
    const { choices } = await client.completions.create({ model, prompt: 'Once', max_tokens: 2 });
    expect(choices[0]!.text).toBe('<0><1>');
    const pieces = [];
    for await (const chunk of await client.completions.create({ model, prompt: 'a', max_tokens: 2, stream: true }))
      pieces.push(chunk.choices[0]!.text);
    expect(pieces.join('')).toBe('<0><1>');
  });

  it('embeds texts', async () => {
    const { data, usage } = await client.embeddings.create({ model, input: ['Hello', 'a'] });
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [5, 0.5],
      [1, 0.5],
    ]);
    expect(usage.prompt_tokens).toBe(6);
  });

  it('lists models', async () => {
    const ids = [];
    for await (const { id, owned_by } of client.models.list()) ids.push([id, owned_by]);
    expect(ids).toEqual([['qsf', 'qsf']]);
    expect(await client.models.retrieve('qsf')).toMatchObject({ id: 'qsf', object: 'model' });
  });

  it('asks several models by their names', async () => {
    client = new OpenAI({ apiKey: '-', baseURL, fetch: openaiFetch({ a: fake.llm, 'b/c': fake.llm }), maxRetries: 0 });
    expect((await create({ model: 'b/c' })).model).toBe('b/c');
    expect(await client.models.retrieve('b/c')).toMatchObject({ id: 'b/c' });
    await expect(create({ model: 'd' })).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
    await expect(client.models.retrieve('d')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });
});

describe('errors', () => {
  it.each([
    ['a value that is not there', { store: true }, 'unsupported'],
    ['a value outside its range', { temperature: -1 }, 'bad_argument'],
    ['no messages', { messages: [] }, 'bad_argument'],
  ])('of the caller are bad requests: %s', async (_, more, code) => {
    for (const make of [create, streamed]) {
      const error: unknown = await make(more).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({ status: 400, code, type: 'invalid_request_error' });
    }
  });

  it.each<[string, Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>]>([
    ['temperature', { temperature: -1 }],
    ['store', { store: true }],
    ['messages', { messages: [] }],
    ['messages', { messages: 5 as never }],
    ['messages', { messages: undefined as never }],
    ['messages[0].role', { messages: [{ content: 'Hello' } as never] }],
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'image_url' } as never] }] }],
    ['tools[0].type', { tools: [{ type: 'custom' } as never] }],
    ['tools[0].function.name', { tools: [{ type: 'function' } as never] }],
    [
      'messages[0].tool_calls[0].function.name',
      { messages: [{ role: 'assistant', tool_calls: [{ type: 'function' }] } as never] },
    ],
    ['tool_choice', { tool_choice: 'required' }],
    ['response_format.type', { response_format: { type: 'xml' } as never }],
    ['logit_bias', { logit_bias: { x: 1 } }],
    ['stop', { stop: 5 as never }],
    ['top_p_', { top_p_: 1 } as never],
  ])('of the caller name the parameter %s', async (param, more) => {
    for (const make of [create, streamed])
      await expect(make(more as object)).rejects.toMatchObject({ status: 400, param });
  });

  it('of other calls name the parameter too', async () => {
    const { completions, embeddings } = client;
    await expect(completions.create({ model, prompt: ['a', 'b'] })).rejects.toMatchObject({ param: 'prompt' });
    await expect(embeddings.create({ model, input: [] })).rejects.toMatchObject({ param: 'input' });
    fake.backend.answers.embed = async () => failure('bad_argument', 'texts[1]: the text to embed is empty');
    await expect(embeddings.create({ model, input: ['a', ''] })).rejects.toMatchObject({ param: 'input[1]' });
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    await expect(create()).rejects.toMatchObject({ code: 'context_full', param: 'messages' });
    await expect(completions.create({ model, prompt: 'a' })).rejects.toMatchObject({ param: 'prompt' });
    fake.instance.refuse.start = { code: 'bad_input', sentence: "the regular expression '(' is wrong at byte 1" };
    await expect(create()).rejects.toMatchObject({ status: 400, param: null });
    fake.instance.refuse.start = { code: 'internal', sentence: 'messages broke it.' };
    await expect(create()).rejects.toMatchObject({ status: 500, param: null });
  });

  it('of the engine before the first piece have a status, also for a stream', async () => {
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    for (const make of [create, streamed])
      await expect(make()).rejects.toMatchObject({ status: 400, code: 'context_full' });
    fake.instance.refuse.start = { code: 'internal', sentence: 'Broken.' };
    await expect(create()).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    fake.instance.refuse.start = { code: 'out_of_memory', sentence: 'Full.' };
    await expect(create()).rejects.toMatchObject({ status: 503, type: 'server_error' });
  });

  it('in a stream reject the loop after the pieces before', async () => {
    fake.instance.script = { fails: { before: 2, error: { code: 'not_finite', sentence: 'No numbers.' } } };
    const pieces: string[] = [];
    const reading = (async () => {
      for await (const { choices } of await streamed({ max_tokens: 9 })) pieces.push(choices[0]!.delta.content ?? '');
    })();
    await expect(reading).rejects.toMatchObject({ code: 'not_finite' });
    expect(pieces.join('')).toBe('<0><1>');
  });

  it('are retried by the client only if they may pass', async () => {
    const again = client.withOptions({ maxRetries: 1 });
    fake.instance.refuse.start = { code: 'internal', sentence: 'Broken.' };
    await expect(again.chat.completions.create({ model, messages })).rejects.toMatchObject({ status: 500 });
    expect(fake.backend.starts).toHaveLength(1);
    fake.instance.refuse.start = { code: 'out_of_memory', sentence: 'Full.' };
    await expect(again.chat.completions.create({ model, messages })).rejects.toMatchObject({ status: 503 });
    expect(fake.backend.starts).toHaveLength(3);
  });
});

describe('an abort', () => {
  it.each([false, true])('ends a request (stream: %s) and frees the model', async (stream) => {
    fake.hold();
    const abort = new AbortController();
    const asked = client.chat.completions.create({ model, messages, stream }, { signal: abort.signal });
    await Promise.all([
      expect(asked).rejects.toBeInstanceOf(OpenAI.APIUserAbortError),
      fake.waits().then(() => abort.abort()),
    ]);
    fake.release();
    expect((await create()).choices[0]!.message.content).toBe('<0><1><2>');
  });

  it('ends a stream, and so does leaving its loop', async () => {
    const endless = await streamed({ max_tokens: 50 });
    for await (const { choices } of endless) if (choices[0]!.delta.content === '<1>') break;
    expect((await create()).choices[0]!.message.content).toBe('<0><1><2>');
  });

  it('ends a request that waits for its turn', async () => {
    fake.hold();
    const first = create();
    await fake.waits();
    const abort = new AbortController();
    const second = client.chat.completions.create({ model, messages }, { signal: abort.signal });
    abort.abort();
    await expect(second).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    fake.release();
    await first;
    expect(fake.backend.starts).toHaveLength(1);
  });
});

it('requests take turns', async () => {
  const answers = await Promise.all([create(), streamed().then(texts), create(), streamed().then(texts)]);
  expect(answers[1]).toEqual(['<0>', '<1>', '<2>']);
  expect(answers[2]).toMatchObject({ choices: [{ message: { content: '<0><1><2>' } }] });
});

it('a stream that nobody reads holds up nobody', async () => {
  await streamed();
  expect((await create()).choices[0]!.message.content).toBe('<0><1><2>');
});

describe('fetch() itself', () => {
  const ask = (body: BodyInit, init: RequestInit = {}) =>
    openaiFetch(fake.llm)(`${baseURL}/chat/completions`, { method: 'POST', body, ...init });
  const body = JSON.stringify({ messages, max_tokens: 2 });

  it('takes a Request, and bodies of any kind', async () => {
    const request = new Request(`${baseURL}/chat/completions?x=1`, { method: 'POST', body });
    const forms = [openaiFetch(fake.llm)(request), ask(new TextEncoder().encode(body)), ask(new Blob([body]))];
    for (const asked of forms) {
      const response = await asked;
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(await response.json()).toMatchObject({ choices: [{ message: { content: '<0><1>' } }] });
    }
  });

  it('sends events that end with [DONE]', async () => {
    const response = await ask(JSON.stringify({ messages, max_tokens: 1, stream: true }));
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const events = (await response.text()).split('\n\n');
    expect(events.slice(-2)).toEqual(['data: [DONE]', '']);
    expect(events[1]).toMatch(/^data: \{.*"content":"<0>"/);
  });

  it('reranks documents', async () => {
    const rerank = (params: object, to = openaiFetch(fake.llm)) =>
      to(`${baseURL}/rerank`, { method: 'POST', body: JSON.stringify({ model, query: 'Hello', ...params }) });
    const documents = ['a', 'long', 'bc'];
    expect(await (await rerank({ documents, top_n: 2 })).json()).toEqual({
      ...{ object: 'list', model },
      results: [
        { index: 1, relevance_score: 4 },
        { index: 2, relevance_score: 2 },
      ],
    });
    const { results } = (await (await rerank({ documents })).json()) as { results: object[] };
    expect(results).toHaveLength(3);
    const { chat, completions, embeddings } = fake.llm;
    const other = openaiFetch({ chat, completions, embeddings });
    for (const wrong of [rerank({}), rerank({ documents: 'a' }), rerank({ documents, top_n: 0 })])
      expect((await wrong).status).toBe(400);
    expect((await rerank({ documents }, other)).status).toBe(400);
  });

  it('refuses other addresses, methods and bodies', async () => {
    const refused = async (asked: Promise<Response>) => {
      const response = await asked;
      const { error } = (await response.json()) as { error: { code: string } };
      return [response.status, error.code];
    };
    const to = openaiFetch(fake.llm);
    expect(await refused(to(`${baseURL}/images`, { method: 'POST', body }))).toEqual([404, 'unknown_url']);
    expect(await refused(to(`${baseURL}/embeddings`))).toEqual([405, 'method_not_allowed']);
    const named = openaiFetch({ one: fake.llm });
    expect(await refused(named(`${baseURL}/models/%E0%A4%A`))).toEqual([404, 'model_not_found']);
    for (const wrong of ['{', '[]', '5', '']) expect(await refused(ask(wrong))).toEqual([400, 'bad_argument']);
    expect(await refused(ask('{"messages":5}'))).toEqual([400, 'bad_argument']);
  });

  it('rejects with the reason of an abort', async () => {
    const reason = new Error('enough');
    await expect(ask(body, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(ask(body, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  });
});
