// The package's public surface.
export { QSF } from './page/qsf.js';
export { QSFError } from './errors.js';
export type { ErrorName } from './errors.js';
export { GiB, KiB, MiB } from './constants.js';
export { hideSecrets } from './secrets.js';
export type {
  CacheEntry,
  CacheUsage,
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
  ModelSource,
  NetworkOptions,
  Pooling,
  Progress,
  Prompt,
  PruneOptions,
  Region,
  ResponseFormat,
  Span,
  Stats,
  TemplateOptions,
  Trace,
  Variant,
} from './types.js';
