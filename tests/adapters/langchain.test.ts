// qsf/fetch, with LangChain's published classes for OpenAI's interface.
import { AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { openaiFetch } from '../../web/src/fetch.js';
import { removeFakeWorker } from '../web/fake-worker.js';
import { ANSWER, fakeModel } from './model.js';
import type { Fake } from './model.js';

let fake: Fake;
let chat: ChatOpenAI;
let embeddings: OpenAIEmbeddings;
beforeEach(async () => {
  fake = await fakeModel();
  chat = chatOf(3);
  embeddings = new OpenAIEmbeddings(how());
});
afterEach(removeFakeWorker);

const how = () => ({
  ...{ model: 'local', apiKey: '-', maxRetries: 0 },
  configuration: { baseURL: 'https://page.test/v1', fetch: openaiFetch(fake.llm) },
});
const chatOf = (maxTokens: number) => new ChatOpenAI({ ...how(), maxTokens });

const weather = tool(async ({ city }) => `Sunny in ${city}.`, {
  name: 'weather',
  description: 'The weather of a city',
  schema: z.object({ city: z.string() }),
});

describe('ChatOpenAI', () => {
  it('answers messages, with usage', async () => {
    const answer = await chat.invoke([new SystemMessage('Be brief.'), new HumanMessage('Hello')]);
    expect(answer.content).toBe('<0><1><2>');
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 7, output_tokens: 3, total_tokens: 10 });
    expect(answer.response_metadata).toMatchObject({ finish_reason: 'length' });
    expect(fake.values().messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ]);
    expect(fake.backend.starts[0]).toMatchObject({ maxTokens: 3 });
  });

  it('streams pieces, which are collected to the whole answer', async () => {
    const pieces: string[] = [];
    let whole: AIMessageChunk | undefined;
    for await (const chunk of await chat.stream('Hello')) {
      whole = whole?.concat(chunk) ?? chunk;
      if (chunk.content !== '') pieces.push(String(chunk.content));
    }
    expect(pieces).toEqual(['<0>', '<1>', '<2>']);
    expect(whole?.usage_metadata).toMatchObject({ output_tokens: 3 });
  });

  it('calls tools, whole and streamed, and answers their results', async () => {
    const calling = chatOf(9).bindTools([weather]);
    fake.answers(ANSWER);
    const answer = await calling.invoke('Weather?');
    const call = { name: 'weather', args: { city: 'Zürich' } };
    expect(answer.tool_calls).toMatchObject([call]);
    expect(fake.values().tools).toMatchObject([{ type: 'function', function: { name: 'weather' } }]);
    const result = (await weather.invoke(answer.tool_calls![0]!)) as ToolMessage;
    fake.says('It is sunny.');
    const next = await calling.invoke([new HumanMessage('Weather?'), answer, result]);
    expect(next.content).toBe('It is sunny.');
    expect(fake.values().messages.slice(1)).toMatchObject([
      { role: 'assistant', tool_calls: [{ function: { name: 'weather', arguments: { city: 'Zürich' } } }] },
      { role: 'tool', content: 'Sunny in Zürich.', tool_call_id: answer.tool_calls![0]!.id },
    ]);

    fake.answers(ANSWER);
    let whole: AIMessageChunk | undefined;
    for await (const chunk of await calling.stream('Weather?')) whole = whole?.concat(chunk) ?? chunk;
    expect(whole?.tool_calls).toMatchObject([call]);
  });

  it('calls one tool at a time if it is asked to', async () => {
    const twice = [...ANSWER, ANSWER.at(-1)!];
    fake.answers(twice);
    expect((await chatOf(9).bindTools([weather]).invoke('Weather?')).tool_calls).toHaveLength(2);
    fake.answers(twice);
    const one = await chatOf(9).bindTools([weather], { parallel_tool_calls: false }).invoke('Weather?');
    expect(one.tool_calls).toHaveLength(1);
    expect(one.response_metadata).toMatchObject({ finish_reason: 'tool_calls' });
  });

  it('gives values of a schema, which the engine holds the answer to', async () => {
    fake.says('{"age":5}');
    const asked = chat.withStructuredOutput(z.object({ age: z.number() }), { method: 'jsonSchema' });
    expect(await asked.invoke('Age?')).toEqual({ age: 5 });
    expect(fake.instance.grammar).toMatchObject({ kind: 'json_schema' });
  });

  it('ends by an abort and frees the model', async () => {
    fake.hold();
    const abort = new AbortController();
    const asked = chat.invoke('Hello', { signal: abort.signal });
    await Promise.all([expect(asked).rejects.toThrow(/abort/i), fake.waits().then(() => abort.abort())]);
    fake.release();
    expect((await chat.invoke('Hello')).content).toBe('<0><1><2>');
  });

  it("rejects with the engine's sentence", async () => {
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    await expect(chat.invoke('Hello')).rejects.toThrow('Too long.');
  });
});

it('OpenAIEmbeddings give the embeddings of texts', async () => {
  expect(await embeddings.embedQuery('Hello')).toEqual([5, 0.5]);
  expect(await embeddings.embedDocuments(['Hello', 'a'])).toEqual([
    [5, 0.5],
    [1, 0.5],
  ]);
});
