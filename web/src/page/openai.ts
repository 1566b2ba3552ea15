// A model in OpenAI's shapes: create() makes the options of chat(), generate() and embed(), and of their results
// OpenAI's answers.
import type { CallPart, ChatStream } from '../answer-types.js';
import { checkName } from './options.js';
import { chatOptions, eachChoice, inputsOf, messagesOf, modelOf, paramsOf } from './openai-params.js';
import { promptOf, refusal, streamingOf, textOptions } from './openai-params.js';
import type { Params } from './openai-params.js';
import { chatLogprobs, textLogprobs } from './logprobs.js';
import { chatRequest, generateRequest } from './requests.js';
import { Usage, finishOf, finishOfChat } from './usage.js';
import type * as OpenAI from '../openai-types.js';
import type { ChatMessage, ChatOptions, EmbedOptions, GenerateOptions } from '../types.js';
import type { GenerationStream, Prompt, Stats } from '../types.js';

/** The methods of a model that answer in OpenAI's shapes. */
export interface Model {
  chat(messages: readonly ChatMessage[], options: ChatOptions): ChatStream;
  generate(prompt: Prompt, options: GenerateOptions): GenerationStream;
  embed(texts: readonly Prompt[], options: EmbedOptions): Promise<Float32Array[]>;
  tokenize(text: string): Promise<number[]>;
  stats(): Promise<Stats>;
}

export function chatCompletions(model: Model): OpenAI.ChatCompletions {
  const create = async (given: OpenAI.ChatCompletionCreateParams, how: OpenAI.RequestOptions = {}) => {
    const params = paramsOf('chat.completions', given, how);
    const head = headOf('chatcmpl', params);
    const { stream, usage } = streamingOf(params);
    const [messages, options] = [messagesOf(params), chatOptions(params)];
    chatRequest(messages, options); // refuses now what a stream refuses when it is read
    const answers = eachChoice(params, options).map((of) => () => model.chat(messages, of));
    return stream ? chatChunks(answers, head, usage) : chatCompletion(answers, head);
  };
  return { create } as OpenAI.ChatCompletions;
}

export function completions(model: Model): OpenAI.Completions {
  const create = async (given: OpenAI.CompletionCreateParams, how: OpenAI.RequestOptions = {}) => {
    const params = paramsOf('completions', given, how);
    const head = headOf('cmpl', params);
    const { stream, usage } = streamingOf(params);
    const [prompt, options] = [promptOf(params), textOptions(params)];
    generateRequest(prompt, options); // as above
    const texts = eachChoice(params, options).map((of) => () => model.generate(prompt, of));
    return stream ? textChunks(texts, head, usage) : completion(texts, head);
  };
  return { create } as OpenAI.Completions;
}

export function embeddings(model: Model): OpenAI.Embeddings {
  const create = async (given: OpenAI.EmbeddingCreateParams, how: OpenAI.RequestOptions = {}) => {
    const params = paramsOf('embeddings', given, how);
    const name = modelOf(params);
    const inputs = inputsOf('input', params.input);
    const format = checkName('encoding_format', ['float', 'base64'], params.encoding_format as 'float' | undefined);
    if (params.dimensions !== undefined) {
      const { dim } = (await model.stats()).model;
      if (params.dimensions !== dim) throw refusal('dimensions', params.dimensions, [dim]);
    }
    const vectors = await model.embed(inputs, { signal: params.signal });
    const sizes = await Promise.all(
      inputs.map(async (input) => (typeof input === 'string' ? await model.tokenize(input) : input).length),
    );
    const tokens = sizes.reduce((sum, size) => sum + size);
    const encode = format === 'base64' ? base64 : (vector: Float32Array) => Array.from(vector);
    return {
      object: 'list',
      data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: encode(vector) })),
      model: name,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  };
  return { create } as OpenAI.Embeddings;
}

const base64 = ({ buffer, byteOffset, byteLength }: Float32Array): string =>
  btoa(Array.from(new Uint8Array(buffer, byteOffset, byteLength), (byte) => String.fromCharCode(byte)).join(''));

/** Returns the members that an answer and its chunks have in common. */
function headOf(prefix: string, params: Params): OpenAI.Head {
  const random = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16).padStart(8, '0'));
  return { id: `${prefix}-${random.join('')}`, created: Math.floor(Date.now() / 1000), model: modelOf(params) };
}

/** Begins one of the choices, which are made one after the other. */
type Begin<T> = () => T;

async function chatCompletion(answers: Begin<ChatStream>[], head: OpenAI.Head): Promise<OpenAI.ChatCompletion> {
  const choices: OpenAI.ChatCompletion['choices'] = [];
  const usage = new Usage();
  for (const [index, begin] of answers.entries()) {
    const result = await begin().result;
    const { content, reasoning_content, tool_calls = [] } = result.message;
    const calls = tool_calls.map(({ id, function: call }) => callOf({ id, ...call }));
    const message: OpenAI.ChatCompletionMessage = {
      role: 'assistant',
      content: calls.length > 0 && content === '' ? null : content,
      refusal: null,
      ...(reasoning_content !== undefined && { reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
    const [logprobs, finish_reason] = [chatLogprobs(result), finishOfChat(result, calls.length)];
    choices.push({ index, message, logprobs, finish_reason });
    usage.add(result);
  }
  return { ...head, object: 'chat.completion', choices, usage: usage.sum };
}

async function* chatChunks(
  answers: Begin<ChatStream>[],
  head: OpenAI.Head,
  withUsage: boolean,
): OpenAI.Chunks<OpenAI.ChatCompletionChunk> {
  const chunk = (
    index: number,
    delta: OpenAI.ChatCompletionDelta,
    finish_reason: OpenAI.FinishReason | null = null,
    logprobs: OpenAI.ChatLogprobs | null = null,
  ): OpenAI.ChatCompletionChunk => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index, delta, logprobs, finish_reason }],
    ...(withUsage && { usage: null }),
  });
  const usage = new Usage();
  for (const [index, begin] of answers.entries()) {
    const answer = begin();
    let calls = 0;
    yield chunk(index, { role: 'assistant', content: '' });
    for await (const part of answer.parts()) {
      if (part.type === 'call') yield chunk(index, { tool_calls: [{ index: calls++, ...callOf(part) }] });
      else yield chunk(index, part.type === 'text' ? { content: part.text } : { reasoning_content: part.text });
    }
    const result = await answer.result;
    usage.add(result);
    yield chunk(index, {}, finishOfChat(result, calls), chatLogprobs(result));
  }
  if (withUsage) yield { ...chunk(0, {}), choices: [], usage: usage.sum };
}

async function completion(texts: Begin<GenerationStream>[], head: OpenAI.Head): Promise<OpenAI.Completion> {
  const choices: OpenAI.Completion['choices'] = [];
  const usage = new Usage();
  for (const [index, begin] of texts.entries()) {
    const text = begin();
    const whole = await text.text();
    const result = await text.result;
    choices.push({ index, text: whole, logprobs: textLogprobs(result), finish_reason: finishOf(result) });
    usage.add(result);
  }
  return { ...head, object: 'text_completion', choices, usage: usage.sum };
}

async function* textChunks(
  texts: Begin<GenerationStream>[],
  head: OpenAI.Head,
  withUsage: boolean,
): OpenAI.Chunks<OpenAI.CompletionChunk> {
  const chunk = (
    index: number,
    text: string,
    finish_reason: OpenAI.TextFinish | null = null,
    logprobs: OpenAI.TextLogprobs | null = null,
  ): OpenAI.CompletionChunk => ({
    ...head,
    object: 'text_completion',
    choices: [{ index, text, logprobs, finish_reason }],
    ...(withUsage && { usage: null }),
  });
  const usage = new Usage();
  for (const [index, begin] of texts.entries()) {
    const text = begin();
    for await (const piece of text) yield chunk(index, piece);
    const result = await text.result;
    usage.add(result);
    yield chunk(index, '', finishOf(result), textLogprobs(result));
  }
  if (withUsage) yield { ...chunk(0, ''), choices: [], usage: usage.sum };
}

const callOf = ({ id, name, arguments: values }: Omit<CallPart, 'type'>): OpenAI.ChatCompletionToolCall => ({
  ...{ id, type: 'function', function: { name, arguments: JSON.stringify(values) } },
});
