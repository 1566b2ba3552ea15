// The package's public surface.
export { QSF } from './qsf.js';
export { QSFError } from './errors.js';
export type { ErrorName } from './errors.js';
export { GiB, KiB, MiB } from './constants.js';
export type {
  CacheEntry,
  GenerateOptions,
  GenerationStats,
  KvType,
  LoadOptions,
  MemoryRegion,
  ModelSource,
  NetworkOptions,
  Progress,
  Prompt,
  Stats,
  Variant,
} from './types.js';
