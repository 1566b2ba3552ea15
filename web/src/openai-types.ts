// The public types of OpenAI's shapes. Parameters accept what the published types of the `openai` package have, and
// answers are values of those types. In all parameters null counts as omitted.
import type { ResponseFormat } from './format-types.js';
import type { ChatMessage } from './types.js';

/** Options of which each may be omitted, or null. */
type Nullable<T> = { readonly [K in keyof T]?: T[K] | null | undefined };

/** The second argument of create(). */
export interface RequestOptions {
  /** An abort ends the computation and rejects with the signal's reason. */
  signal?: AbortSignal | null | undefined;
}

interface Labels {
  /** Any name: the open model answers. Answers repeat it; without one they have `qsf`. */
  model: string;
  /** Labels of servers, which never change an answer. */
  user: string;
  metadata: object;
  safety_identifier: string;
  prompt_cache_key: string;
  prompt_cache_retention: string;
}

interface Sampling extends Labels {
  temperature: number;
  top_p: number;
  max_tokens: number;
  seed: number;
  stop: string | readonly string[];
  /** Answers in chunks. */
  stream: boolean;
  /** With `include_usage`, the last chunk has the usage and no choice. Only with `stream`. */
  stream_options: { readonly include_usage?: boolean | null | undefined };
  /** Choices, which are made one after the other from the same prompt; at most 128. */
  n: number;
  /** The options `presencePenalty` and `frequencyPenalty` of generate(). */
  presence_penalty: number;
  frequency_penalty: number;
  /** Numbers that are added to the logits of token ids. */
  logit_bias: Readonly<Record<string, number>>;
}

/** A message in OpenAI's shape. */
export interface ChatCompletionMessageParam {
  /** `developer` is the template's `system`. */
  readonly role: string;
  /** A text, or parts of the type `text`. */
  readonly content?: string | readonly { readonly type: string; readonly text?: string }[] | null | undefined;
  readonly name?: string | undefined;
  readonly reasoning_content?: string | null | undefined;
  readonly tool_calls?:
    | readonly {
        readonly id: string;
        readonly type: string;
        readonly function?: { readonly name: string; readonly arguments: string };
      }[]
    | null;
  readonly tool_call_id?: string | undefined;
}

export interface ChatCompletionTool {
  /** Only `function`. */
  readonly type: string;
  readonly function?: {
    readonly name: string;
    readonly description?: string | undefined;
    readonly parameters?: object | undefined;
    readonly strict?: boolean | null | undefined;
  };
}

/** The parameters of `chat.completions.create()`. */
export interface ChatCompletionCreateParams extends Nullable<
  Sampling & {
    tools: readonly ChatCompletionTool[];
    /**
     * `auto`; `none`, with which the template gets no tools; `required` for an answer that begins with a call; or the
     * one function to call, as `{ type: 'function', function: { name } }`.
     */
    tool_choice: string | object;
    /** Texts that may be written: OpenAI's forms, and those of `responseFormat`. */
    response_format:
      | ResponseFormat
      | { type: 'text' }
      | {
          type: 'json_schema';
          json_schema: {
            name?: string;
            description?: string;
            schema?: object | boolean;
            strict?: boolean | null | undefined;
          };
        };
    /** The same as `max_tokens`. */
    max_completion_tokens: number;
    /** Tokens after which a thought is ended; 0: at once; -1: never, which is the default. Other servers have it too. */
    reasoning_budget: number;
    /** The template's variable `reasoning_effort`; `none` also sets `enable_thinking` to false. */
    reasoning_effort: string;
    /** The options `template` and `templateArgs` of chat(), by the names that other servers have for them. */
    chat_template: string;
    chat_template_kwargs: Record<string, unknown>;
    /** With false an answer has at most one call, after which it ends. */
    parallel_tool_calls: boolean;
    /** The log-probabilities of the answer's tokens. The model must have been opened with `logprobs`. */
    logprobs: boolean;
    /** With them: also those of as many of the likeliest tokens, at most 20. */
    top_logprobs: number;
  }
> {
  /** Messages in OpenAI's shape, or those of chat() and of conversations. */
  readonly messages: readonly (ChatCompletionMessageParam | ChatMessage)[];
}

/** The parameters of `completions.create()`. */
export interface CompletionCreateParams extends Nullable<Sampling & { logprobs: number }> {
  /** A text, or token ids to which nothing is added; or a list of one of these. `logprobs` is the number of likeliest tokens, at most 20. */
  readonly prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[] | null;
}

/** The parameters of `embeddings.create()`. */
export interface EmbeddingCreateParams extends Nullable<
  Pick<Labels, 'model' | 'user'> & {
    /** The length of the model's embeddings, which has no other. */
    dimensions: number;
    /** `base64`: the little-endian 32-bit floats. Default `float`. */
    encoding_format: 'float' | 'base64';
  }
> {
  /** One input or several: texts, or token ids. */
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
}

/** Numbers of tokens. The prompt counts once, however many choices there are. */
export interface CompletionUsage {
  prompt_tokens: number;
  /** Tokens of all choices, with those that ended them. */
  completion_tokens: number;
  total_tokens: number;
  /** `cached_tokens`: tokens of the prompt that were in the sequence already. */
  prompt_tokens_details: { cached_tokens: number };
}

/** The members that answers and chunks have in common. */
export interface Head {
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
}

/** The reason for the end of a text; a full context is `length`. */
export type TextFinish = 'stop' | 'length';
export type FinishReason = TextFinish | 'tool_calls';

/** A call of a tool by a model. */
export interface ChatCompletionToolCall {
  id: string;
  type: 'function';
  /** `arguments` is JSON. */
  function: { name: string; arguments: string };
}

export interface TokenLogprob {
  /** The token's text, in which bytes that are no whole character are U+FFFD. */
  token: string;
  logprob: number;
  bytes: number[];
}

/** The log-probabilities of an answer's tokens, with marks of thoughts and calls. In a stream the last chunk has them. */
export interface ChatLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[];
  refusal: null;
}

/** The log-probabilities of a continued text. */
export interface TextLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs?: Record<string, number>[];
  text_offset: number[];
}

export interface ChatCompletionMessage {
  role: 'assistant';
  content: string | null;
  refusal: null;
  /** Thoughts before the answer, if there are any. */
  reasoning_content?: string;
  tool_calls?: ChatCompletionToolCall[];
}

export interface ChatCompletion extends Head {
  object: 'chat.completion';
  choices: {
    index: number;
    message: ChatCompletionMessage;
    logprobs: ChatLogprobs | null;
    finish_reason: FinishReason;
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionDelta {
  role?: 'assistant';
  content?: string;
  reasoning_content?: string;
  tool_calls?: (ChatCompletionToolCall & { index: number })[];
}

/** A part of an answer. The last one with a choice has the finish reason. */
export interface ChatCompletionChunk extends Head {
  object: 'chat.completion.chunk';
  choices: {
    index: number;
    delta: ChatCompletionDelta;
    logprobs: ChatLogprobs | null;
    finish_reason: FinishReason | null;
  }[];
  /** With `include_usage`: null except in the last chunk, which has no choice. */
  usage?: CompletionUsage | null;
}

/** A continued text. */
export interface Completion extends Head {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs: TextLogprobs | null; finish_reason: TextFinish }[];
  usage: CompletionUsage;
}

/** A part of a continued text. The last one with a choice has the finish reason. */
export interface CompletionChunk extends Head {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs: TextLogprobs | null; finish_reason: TextFinish | null }[];
  /** As of chat chunks. */
  usage?: CompletionUsage | null;
}

export interface CreateEmbeddingResponse<E extends number[] | string = number[]> {
  object: 'list';
  data: { object: 'embedding'; index: number; embedding: E }[];
  model: string;
  /** Tokens of the inputs, without those that the model adds. */
  usage: { prompt_tokens: number; total_tokens: number };
}

/** Chunks as they are made. Leaving the loop ends the computation. */
export type Chunks<T> = AsyncGenerator<T, undefined, undefined>;

/** create() in one shape: whole, or in chunks with `stream`. */
export interface CompletionsShape<Params extends object, Whole, Chunk> {
  /**
   * Rejects with bad_argument for an unknown or invalid parameter, and with unsupported for one that this package does
   * not have. A stream rejects with the errors of generate() when it is read.
   */
  create(params: Params & { readonly stream: true }, options?: RequestOptions): Promise<Chunks<Chunk>>;
  create(params: Params & { readonly stream?: false | null | undefined }, options?: RequestOptions): Promise<Whole>;
  create(params: Params, options?: RequestOptions): Promise<Whole | Chunks<Chunk>>;
}

export type ChatCompletions = CompletionsShape<ChatCompletionCreateParams, ChatCompletion, ChatCompletionChunk>;

export type Completions = CompletionsShape<CompletionCreateParams, Completion, CompletionChunk>;

export interface Embeddings {
  create(
    params: EmbeddingCreateParams & { readonly encoding_format: 'base64' },
    options?: RequestOptions,
  ): Promise<CreateEmbeddingResponse<string>>;
  create(
    params: EmbeddingCreateParams & { readonly encoding_format?: 'float' | null | undefined },
    options?: RequestOptions,
  ): Promise<CreateEmbeddingResponse>;
  create(params: EmbeddingCreateParams, options?: RequestOptions): Promise<CreateEmbeddingResponse<number[] | string>>;
}
