// The part of the AI SDK's specifications `v3` and `v4` that a local model has: it is the same in both. A test compares it
// with `@ai-sdk/provider`.

type Json = null | string | number | boolean | { readonly [name: string]: Json | undefined } | readonly Json[];
type JsonObject = Record<string, Json | undefined>;

/** Options for one provider by its name; those under `qsf` are options of chat(). */
export type ProviderOptions = Record<string, JsonObject>;

/** Any part of a message; `type` says which members it has. */
interface Part {
  type: string;
}

export interface TextPart extends Part {
  type: 'text' | 'reasoning';
  text: string;
}

export interface ToolCallPart extends Part {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: unknown;
}

export interface ToolResultPart extends Part {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output: { type: string; value?: unknown; reason?: string | undefined };
}

/** A message of a conversation: a text from the system, or parts. */
export type ModelMessage =
  { role: 'system'; content: string } | { role: 'user' | 'assistant' | 'tool'; content: readonly Part[] };

export interface FunctionTool {
  type: 'function';
  name: string;
  description?: string | undefined;
  inputSchema: object;
  /** Whether calls follow the schema in any case. */
  strict?: boolean | undefined;
}

/** A tool that a provider runs itself, which a local model has not. */
export interface ProviderTool {
  type: 'provider';
  name: string;
}

export interface CallOptions {
  prompt: ModelMessage[];
  maxOutputTokens?: number | undefined;
  temperature?: number | undefined;
  stopSequences?: string[] | undefined;
  topP?: number | undefined;
  topK?: number | undefined;
  presencePenalty?: number | undefined;
  frequencyPenalty?: number | undefined;
  responseFormat?: { type: 'text' } | { type: 'json'; schema?: unknown } | undefined;
  seed?: number | undefined;
  tools?: (FunctionTool | ProviderTool)[] | undefined;
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string } | undefined;
  abortSignal?: AbortSignal | undefined;
  reasoning?: string | undefined;
  providerOptions?: ProviderOptions | undefined;
}

export type Warning =
  | { type: 'unsupported'; feature: string; details?: string }
  | { type: 'compatibility'; feature: string; details?: string };

export interface Finish {
  unified: 'stop' | 'length' | 'tool-calls';
  /** The end of the generation by its name in this package. */
  raw: string;
}

export interface Usage {
  inputTokens: { total: number; noCache: number; cacheRead: number; cacheWrite: undefined };
  outputTokens: { total: number; text: undefined; reasoning: undefined };
}

export interface ToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  /** JSON. */
  input: string;
}

export type Content = ({ type: 'text'; text: string } | { type: 'reasoning'; text: string }) | ToolCall;

interface Metadata {
  id: string;
  timestamp: Date;
  modelId: string;
}

export interface GenerateResult {
  content: Content[];
  finishReason: Finish;
  usage: Usage;
  response: Metadata;
  warnings: Warning[];
}

export type StreamPart =
  | { type: 'stream-start'; warnings: Warning[] }
  | ({ type: 'response-metadata' } & Metadata)
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end' | 'tool-input-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | ToolCall
  | { type: 'finish'; usage: Usage; finishReason: Finish }
  | { type: 'error'; error: unknown };

/** A specification: `v4` is that of version 7 of the SDK, which takes both, and `v3` that of version 6. */
export type Specification = 'v3' | 'v4';

/** A language model of the specification. */
export interface LanguageModel<S extends Specification = 'v4'> {
  readonly specificationVersion: S;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  doGenerate(options: CallOptions): Promise<GenerateResult>;
  doStream(options: CallOptions): Promise<{ stream: ReadableStream<StreamPart> }>;
}

/** An embedding model of the specification. */
export interface EmbeddingModel<S extends Specification = 'v4'> {
  readonly specificationVersion: S;
  readonly provider: string;
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: undefined;
  readonly supportsParallelCalls: boolean;
  doEmbed(options: {
    values: string[];
    dimensions?: number | undefined;
    abortSignal?: AbortSignal | undefined;
  }): Promise<{ embeddings: number[][]; usage: { tokens: number }; warnings: Warning[] }>;
}
