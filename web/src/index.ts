// The package's public surface.
export { QSF } from './page/qsf.js';
export { Conversation } from './page/conversation.js';
export { QSFError } from './errors.js';
export type { ErrorName } from './errors.js';
export { GiB, KiB, MiB } from './constants.js';
export { hideSecrets } from './secrets.js';
export type { SuggestedModel } from './models.js';
export type {
  AnswerPart,
  AssistantMessage,
  CallPart,
  Chat,
  ChatResult,
  ChatStream,
  TextPart,
  ToolCall,
} from './answer-types.js';
export type { ConversationData, ConversationOptions, TokenCount } from './conversation-types.js';
export type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionDelta,
  ChatCompletionMessage,
  ChatCompletionMessageParam,
  ChatCompletionTool,
  ChatCompletionToolCall,
  ChatCompletions,
  ChatLogprobs,
  Chunks,
  Completion,
  CompletionChunk,
  CompletionCreateParams,
  CompletionUsage,
  Completions,
  CompletionsShape,
  CreateEmbeddingResponse,
  EmbeddingCreateParams,
  Embeddings,
  FinishReason,
  RequestOptions,
  TextFinish,
  TextLogprobs,
  TokenLogprob,
} from './openai-types.js';
export type { Ranked, RerankOptions } from './rerank-types.js';
export type { ResponseFormat } from './format-types.js';
export type { InSequence, SequenceOptions } from './sequence-types.js';
export type { DraftModel, DraftOptions, DraftStats } from './draft-types.js';
export type { Expected, PlanSummary, Progress, Retry } from './progress-types.js';
export type { KvKept, KvPolicy, KvPolicyOptions } from './kv-policy-types.js';
export type { CacheEntry, CacheUsage, PruneOptions } from './cache-types.js';
export type {
  ChatMessage,
  ChatOptions,
  EmbedOptions,
  End,
  GenerateOptions,
  GenerationResult,
  GenerationStats,
  GenerationStream,
  KvType,
  LoadOptions,
  MemoryRegion,
  ModelInfo,
  ModelSource,
  NetworkOptions,
  Pooling,
  Prompt,
  PromptProgress,
  Region,
  Restored,
  SamplerKind,
  SaveOptions,
  SavedEntry,
  Span,
  SpecialToken,
  Stats,
  TemplateOptions,
  Trace,
  Variant,
} from './types.js';
export type { GeneratedToken, TokenProbability } from './token-types.js';
