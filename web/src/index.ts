// The package's public surface.
export { QSF } from './qsf.js';
export { QSFError } from './errors.js';
export type { ErrorName } from './errors.js';
export { GiB, KiB, MiB } from './constants.js';
export type {
  CacheEntry,
  CacheUsage,
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
  Span,
  Stats,
  Trace,
  Variant,
} from './types.js';
