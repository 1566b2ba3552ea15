// Answers with thoughts and calls in OpenAI's shape.
import { describe, expect, it } from 'vitest';

import type { AnswerPart, AssistantMessage, ChatResult, ChatStream, ToolCall } from '../../web/src/answer-types.js';
import { streamOf } from '../../web/src/page/answer.js';
import { chatCompletions } from '../../web/src/page/openai.js';
import type { Model } from '../../web/src/page/openai.js';
import { textOf } from '../../web/src/page/parts.js';
import { result } from './fake-worker.js';

const messages = [{ role: 'user', content: 'Hello' }];

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of stream) all.push(one);
  return all;
}

describe('an answer in parts', () => {
  const parts: AnswerPart[] = [
    { type: 'thought', text: 'Hm' },
    { type: 'thought', text: '.' },
    { type: 'text', text: 'I ask' },
    { type: 'text', text: ' f.' },
    { type: 'call', id: 'c1', name: 'f', arguments: { a: 1 } },
    { type: 'call', id: 'c2', name: 'g', arguments: {} },
  ];
  const calls = [
    { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
    { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } },
  ];

  /** A model with this answer. */
  function divided(given: AnswerPart[], end: typeof result.end = 'eos'): ReturnType<typeof chatCompletions> {
    const text = (type: string) =>
      given.map((part) => (part.type !== 'call' && part.type === type ? part.text : '')).join('');
    const toolCalls = given.flatMap((part): ToolCall[] =>
      part.type === 'call'
        ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.arguments } }]
        : [],
    );
    const message: AssistantMessage = {
      ...{ role: 'assistant', content: text('text') },
      ...(text('thought') !== '' && { reasoning_content: text('thought') }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    };
    const chat = (): ChatStream => {
      const { stream, items } = streamOf<AnswerPart, ChatResult>(async function* (outcome) {
        for (const part of given) yield [part];
        outcome.resolve({ ...result, end, message });
        return { ...result, end, message };
      }, textOf);
      return Object.assign(stream, { parts: items });
    };
    return chatCompletions({ chat } as unknown as Model);
  }

  it('becomes reasoning_content, content and tool_calls of a message', async () => {
    const { choices } = await divided(parts).create({ messages });
    expect(choices).toEqual([
      {
        ...{ index: 0, logprobs: null, finish_reason: 'tool_calls' },
        message: {
          ...{ role: 'assistant', content: 'I ask f.', refusal: null },
          ...{ reasoning_content: 'Hm.', tool_calls: calls },
        },
      },
    ]);
  });

  it('has null as content if it has calls only, and no empty members', async () => {
    const { choices } = await divided(parts.slice(4)).create({ messages });
    expect(choices[0]!.message).toEqual({ role: 'assistant', content: null, refusal: null, tool_calls: calls });
    const silent = await divided([]).create({ messages });
    expect(silent.choices[0]!.message).toEqual({ role: 'assistant', content: '', refusal: null });
    expect(silent.choices[0]!.finish_reason).toBe('stop');
  });

  it('becomes deltas', async () => {
    const chunks = await collect(await divided(parts).create({ messages, stream: true }));
    expect(chunks.map(({ choices }) => choices[0]!.delta)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning_content: 'Hm' },
      { reasoning_content: '.' },
      { content: 'I ask' },
      { content: ' f.' },
      { tool_calls: [{ index: 0, ...calls[0] }] },
      { tool_calls: [{ index: 1, ...calls[1] }] },
      {},
    ]);
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('tool_calls');
  });

  it('that ends early with calls has length as the reason', async () => {
    const { choices } = await divided(parts, 'length').create({ messages });
    expect(choices[0]!.finish_reason).toBe('length');
  });
});
