// A model in OpenAI's shapes: create() makes the options of chat(), generate() and embed(), and of their results
// OpenAI's answers.
import type { CallPart, ChatStream } from '../answer-types.js';
import { checkName } from './options.js';
import { chatOptions, generateOptions, inputsOf, messagesOf, modelOf, paramsOf } from './openai-params.js';
import { promptOf, refusal, streamingOf } from './openai-params.js';
import type { Params } from './openai-params.js';
import { chatRequest, generateRequest } from './requests.js';
import type * as OpenAI from '../openai-types.js';
import type { ChatMessage, ChatOptions, EmbedOptions, GenerateOptions, GenerationResult } from '../types.js';
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
    const answer = model.chat(messages, options);
    return stream ? chatChunks(answer, head, usage) : chatCompletion(answer, head);
  };
  return { create } as OpenAI.ChatCompletions;
}

export function completions(model: Model): OpenAI.Completions {
  const create = async (given: OpenAI.CompletionCreateParams, how: OpenAI.RequestOptions = {}) => {
    const params = paramsOf('completions', given, how);
    const head = headOf('cmpl', params);
    const { stream, usage } = streamingOf(params);
    const [prompt, options] = [promptOf(params), generateOptions(params)];
    generateRequest(prompt, options); // as above
    const text = model.generate(prompt, options);
    return stream ? textChunks(text, head, usage) : completion(text, head);
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

async function chatCompletion(answer: ChatStream, head: OpenAI.Head): Promise<OpenAI.ChatCompletion> {
  const result = await answer.result;
  const { content, reasoning_content, tool_calls = [] } = result.message;
  const calls = tool_calls.map(({ id, function: call }) => callOf({ id, ...call }));
  const message: OpenAI.ChatCompletionMessage = {
    role: 'assistant',
    content: calls.length > 0 && content === '' ? null : content,
    refusal: null,
    ...(reasoning_content !== undefined && { reasoning_content }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishOfChat(result, calls.length) };
  return { ...head, object: 'chat.completion', choices: [choice], usage: usageOf(result) };
}

async function* chatChunks(
  answer: ChatStream,
  head: OpenAI.Head,
  usage: boolean,
): OpenAI.Chunks<OpenAI.ChatCompletionChunk> {
  const chunk = (
    delta: OpenAI.ChatCompletionDelta,
    finish_reason: OpenAI.FinishReason | null = null,
  ): OpenAI.ChatCompletionChunk => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(usage && { usage: null }),
  });
  let calls = 0;
  yield chunk({ role: 'assistant', content: '' });
  for await (const part of answer.parts()) {
    if (part.type === 'call') yield chunk({ tool_calls: [{ index: calls++, ...callOf(part) }] });
    else yield chunk(part.type === 'text' ? { content: part.text } : { reasoning_content: part.text });
  }
  const result = await answer.result;
  yield chunk({}, finishOfChat(result, calls));
  if (usage) yield { ...chunk({}), choices: [], usage: usageOf(result) };
}

async function completion(text: GenerationStream, head: OpenAI.Head): Promise<OpenAI.Completion> {
  const choice = { index: 0, text: await text.text(), logprobs: null };
  const result = await text.result;
  return {
    ...{ ...head, object: 'text_completion', usage: usageOf(result) },
    choices: [{ ...choice, finish_reason: finishOf(result) }],
  };
}

async function* textChunks(
  text: GenerationStream,
  head: OpenAI.Head,
  usage: boolean,
): OpenAI.Chunks<OpenAI.CompletionChunk> {
  const chunk = (text: string, finish_reason: OpenAI.TextFinish | null = null): OpenAI.CompletionChunk => ({
    ...head,
    object: 'text_completion',
    choices: [{ index: 0, text, logprobs: null, finish_reason }],
    ...(usage && { usage: null }),
  });
  for await (const piece of text) yield chunk(piece);
  const result = await text.result;
  yield chunk('', finishOf(result));
  if (usage) yield { ...chunk(''), choices: [], usage: usageOf(result) };
}

const callOf = ({ id, name, arguments: values }: Omit<CallPart, 'type'>): OpenAI.ChatCompletionToolCall => ({
  ...{ id, type: 'function', function: { name, arguments: JSON.stringify(values) } },
});

const finishOf = ({ end }: GenerationResult): OpenAI.TextFinish =>
  end === 'length' || end === 'context' ? 'length' : 'stop';

/** Returns the reason for the end of an answer with calls. */
const finishOfChat = (result: GenerationResult, calls: number): OpenAI.FinishReason => {
  const finish = finishOf(result);
  return calls > 0 && finish === 'stop' ? 'tool_calls' : finish;
};

/** The token that ends a text is in the sequence, and not among the text's tokens. */
function usageOf({ position, promptTokens, tokens, end }: GenerationResult): OpenAI.CompletionUsage {
  const completion_tokens = tokens.length + (end === 'eos' ? 1 : 0);
  const prompt_tokens = position - completion_tokens;
  return {
    ...{ prompt_tokens, completion_tokens, total_tokens: position },
    prompt_tokens_details: { cached_tokens: prompt_tokens - promptTokens },
  };
}
