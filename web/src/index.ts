// The package's public surface.
export { QSF } from './qsf.js';
export { QSFError } from './errors.js';
export type { ErrorName } from './errors.js';
export { GiB, KiB, MiB } from './constants.js';
export type {
  CacheEntry,
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
  Region,
  Stats,
  Variant,
} from './types.js';
