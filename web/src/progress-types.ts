// The progress of load(), as the page gets it.
import type { KvType } from './boundary.gen.js';

export interface Progress {
  /**
   * `open`: tables are read and the memory plan is made. `plan`: the plan is made, and no weight was requested yet.
   * `download`: weights arrive. `ready`: load() is about to resolve.
   */
  phase: 'open' | 'plan' | 'download' | 'ready';
  /** Present while the draft model is opened, before the model. */
  of?: 'draft';
  /** Bytes of the model that are present and verified, of `total` bytes. Both are 0 before the server has answered. */
  loaded: number;
  total: number;
  /** Bytes for each second of the download, as a mean of the last seconds; and the seconds until all are present. */
  rate?: number;
  secondsLeft?: number;
  /** The next request of a server that failed, until bytes arrive. */
  retry?: Retry;
  /** The consequences of the memory plan, from the phase `plan` on. */
  plan?: PlanSummary;
  /** The expected speed, from the phase `plan` on, if `computeRate` was given. */
  expected?: Expected;
  /** Bytes read from the network and from the cache since load() began. */
  network: number;
  cache: number;
}

/** A request that is made again after a failure. */
export interface Retry {
  /** The number of this try, from 2 to `tries`. */
  attempt: number;
  /** Tries after which the failure is final. */
  tries: number;
  /** Seconds from the report to this try. */
  seconds: number;
}

/** The consequences of a memory plan for a text, known before a weight is requested. */
export interface PlanSummary {
  /** Bytes of all weights in memory, and of those that stay there. */
  weightBytes: number;
  pinnedBytes: number;
  /** Bytes of weights that are read for each token; 0 if all stay. */
  tokenBytes: number;
  /** The type of keys and values. */
  kv: KvType;
  /** Tokens of context of each sequence. */
  maxSeqLen: number;
}

/** The speed that the memory plan makes expect. */
export interface Expected {
  /** Tokens for each second of a generation, early in the context. */
  tokensPerSecond: number;
  /** Bytes of `memory` with which all weights stay in memory, and the speed with them. */
  residentMemory: number;
  residentTokensPerSecond: number;
}
