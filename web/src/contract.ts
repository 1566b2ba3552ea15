// What the page and the worker say to each other; carried by comlink. Errors cross as values, because an exception
// would lose its code on the way.
import type { EmbeddingOptions, KvType, OpenOptions, Pooling, PromptOptions, SamplerOptions } from './boundary.gen.js';
import { QSFError, errorInfo } from './errors.js';
import type { ErrorInfo } from './errors.js';
import type { GenerationResult, NetworkOptions, Progress, Stats, Trace, Variant } from './types.js';

export type Reply<T> = { ok: true; value: T } | { ok: false; error: ErrorInfo };

/**
 * Where the WebAssembly module is: its address, that of the folder of all (which ends in a slash), or its bytes; undefined:
 * where the package has it.
 */
export type WasmSource = string | Uint8Array<ArrayBuffer> | undefined;

export interface LoadRequest {
  /** An absolute address, which is of a file only in Node, or a file. */
  source: string | Blob;
  wasm?: WasmSource;
  memory: number;
  open: OpenOptions;
  kv: KvType | undefined;
  cache: boolean;
  cacheLimit: number | undefined;
  background: boolean;
  variant: Variant | undefined;
  threads: number | undefined;
  network: NetworkOptions;
}

export interface GenerateRequest extends SamplerOptions, PromptOptions {
  prompt: string | Uint32Array;
  stop: string[];
  continue: boolean;
}

export interface EmbedRequest extends EmbeddingOptions {
  texts: (string | Uint32Array)[];
  /** Undefined: as the model says. */
  pooling: Pooling | undefined;
  normalize: boolean | undefined;
}

/** Pieces made since the last call: one at least, unless the generation has ended, and then its result. */
export interface Batch {
  pieces: string[];
  result?: GenerationResult;
}

/** One model in one worker. The page pulls pieces, so a slow consumer holds the worker back. */
export interface EngineWorker {
  /** Tells whether the model is kept in this browser, or will be. */
  load(
    request: LoadRequest,
    onProgress: (progress: Progress) => void,
    onWarning: (warning: string) => void,
  ): Promise<Reply<boolean>>;
  start(request: GenerateRequest): Promise<Reply<void>>;
  next(): Promise<Reply<Batch>>;
  /** Of each text, in their order; one after the other. */
  embed(request: EmbedRequest): Promise<Reply<Float32Array[]>>;
  /** Resolves once nothing is computed any more. */
  stop(): Promise<Reply<void>>;
  stats(): Reply<Stats>;
  trace(): Reply<Trace>;
  tokenize(text: string, special: boolean): Reply<Uint32Array>;
  detokenize(tokens: Uint32Array): Reply<string>;
  /** Releases the cache for other tabs. */
  close(): Promise<Reply<void>>;
}

/** Runs `work` and turns what it throws into a Reply. */
export async function reply<T>(work: () => Promise<T> | T): Promise<Reply<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (thrown) {
    return { ok: false, error: errorInfo(thrown) };
  }
}

export function replySync<T>(work: () => T): Reply<T> {
  try {
    return { ok: true, value: work() };
  } catch (thrown) {
    return { ok: false, error: errorInfo(thrown) };
  }
}

/** The value, or the error thrown as a QSFError. */
export function unwrap<T>(reply: Reply<T>): T {
  if (reply.ok) return reply.value;
  const { code, sentence, ...place } = reply.error;
  throw new QSFError(code, sentence, place);
}
