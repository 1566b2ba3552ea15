// The types of models in the browser's cache.

import type { QuantType } from './boundary.gen.js';

export interface CacheEntry {
  /** The address with `***` in place of user, password and query values. */
  url: string;
  /** The `quantType` that the model was opened with. Each is a file of its own. Absent: none. */
  quantType?: QuantType;
  /** Bytes that are present and verified, of `total`; 0 of 0 for a model that is not in the cache. */
  bytes: number;
  total: number;
  /** Whether everything that the model needs is present; it then opens without the server. */
  complete: boolean;
  /** Time of its last opening by a tab that owns it, in milliseconds since 1970. */
  used?: number;
}

export interface CacheUsage {
  models: number;
  /** Verified bytes of all models. */
  bytes: number;
  /** Bytes that the browser may give to everything that this origin stores. */
  quota?: number;
  /** Whether the browser keeps the models until somebody removes them, even when the disk is full. */
  persisted: boolean;
}

export interface PruneOptions {
  /** Bytes that all models together may take. Default: any. */
  maxBytes?: number | undefined;
  /** Milliseconds since the last opening of a model. Default: any. */
  maxAge?: number | undefined;
}
