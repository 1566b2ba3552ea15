// The calls between the page and the worker, carried by comlink. Errors cross as values, because an exception would
// lose its code on the way.
import type {
  AnswerPiece,
  EmbeddingOptions,
  GrammarKind,
  KvType,
  OpenOptions,
  Pooling,
  PromptOptions,
  SamplerKind,
  SamplerOptions,
} from './boundary.gen.js';
import { QSFError, errorInfo } from './errors.js';
import type { ErrorInfo } from './errors.js';
import type { Progress } from './progress-types.js';
import type {
  GenerationResult,
  ModelInfo,
  NetworkOptions,
  PromptProgress,
  Restored,
  Stats,
  Trace,
  Variant,
} from './types.js';

export type Reply<T> = { ok: true; value: T } | { ok: false; error: ErrorInfo };

/**
 * The location of the WebAssembly module: its address, the address of the folder of all modules (which ends in a
 * slash), or its bytes. Undefined means the package's own location.
 */
export type WasmSource = string | Uint8Array<ArrayBuffer> | undefined;

/** The options of fetching in their canonical form: equal options give equal values. */
export interface Network extends Omit<NetworkOptions, 'headers'> {
  /** Names are in lower case and sorted. */
  headers?: Record<string, string>;
}

/** A file of a model with its name, which Node's messages do not carry. */
export interface NamedFile {
  name: string;
  file: Blob;
}

export interface LoadRequest {
  /**
   * An absolute address, a repository of the Hub as "hf:OWNER/NAME@REVISION", a file, all files of a model, or a model's
   * bytes, which the worker then owns. Only Node takes the address of a file.
   */
  source: string | Blob | readonly NamedFile[] | Uint8Array<ArrayBuffer>;
  /** The model that guesses tokens, as `source`. */
  draft?: LoadRequest['source'] | undefined;
  /** The type of the draft's matrices, as `quantType`. */
  draftType?: string | undefined;
  wasm?: WasmSource;
  memory: number;
  open: OpenOptions;
  kv: KvType | undefined;
  /** In lower case. */
  sha256?: string | undefined;
  /** In lower case. */
  quantType?: string | undefined;
  cache: boolean;
  cacheLimit: number | undefined;
  background: boolean;
  lazy?: boolean;
  variant: Variant | undefined;
  threads: number | undefined;
  network: Network;
}

/** A conversation for the model's chat template, or for another one. */
export interface ChatRequest {
  /** Empty: the file's own. */
  template: string;
  /** The template's variables as a JSON object, and those that replace some of them; the latter may be empty. */
  values: string;
  more: string;
}

/** The lists of sampling; one that is undefined is the default. */
export interface SamplingLists {
  /** Token ids with the numbers that are added to their logits. */
  biases: [number, number][];
  /** The samplers in the order in which they are applied. */
  samplers: SamplerKind[] | undefined;
  /** Texts that end repetitions. */
  breakers: string[] | undefined;
}

/** The holds of an answer, in addition to a grammar. */
export interface Hold {
  /** Tokens after which a thought is ended; undefined: never. */
  thought: number | undefined;
  /** Calls follow the schemas of their tools. Undefined: they are free. */
  calls: { required: boolean; only: string } | undefined;
}

export interface GenerateRequest extends SamplerOptions, PromptOptions {
  prompt: string | Uint32Array | ChatRequest;
  /** The grammar that the text follows. */
  grammar?: { kind: GrammarKind; text: string } | undefined;
  hold?: Hold | undefined;
  /** Whether the answer ends after its first call. */
  oneCall?: boolean;
  lists?: SamplingLists | undefined;
  stop: string[];
  /** Whether next() also gives the progress of the prompt. */
  promptProgress?: boolean;
}

export interface EmbedRequest extends EmbeddingOptions {
  texts: (string | Uint32Array)[];
  /** For which the texts are scored; each embedding is then the score. */
  query?: string;
  /** Undefined: as the model's files say. */
  pooling: Pooling | undefined;
  normalize: boolean | undefined;
}

export interface SaveRequest {
  /** The messages of a conversation as JSON; empty: none. */
  messages: string;
  /** The name under which the file is stored. */
  name: string | undefined;
}

/** A call that takes a sequence. */
export interface Call {
  /** No other call of any caller has it. */
  id: string;
  /** The model of a page. Several tabs may have one engine. */
  caller: string;
  /**
   * Its sequence. Undefined: for a call that begins anew one that is free, and otherwise that of the caller's last
   * generation or restored file.
   */
  sequence?: number | undefined;
}

/**
 * The pieces made since the last call: at least one, except with new progress of the prompt, or with the result after
 * the last piece.
 */
export interface Batch {
  pieces: string[];
  prompt?: PromptProgress;
  /** For an answer, the parts that came with each piece, whose text may be empty. */
  parts?: AnswerPiece[][];
  result?: GenerationResult;
}

/**
 * One model in one worker. A call that takes a sequence waits for its turn. The page pulls pieces, so a slow consumer
 * holds the worker back while no other call waits.
 */
export interface EngineWorker {
  /** Opens the model. Resolves with whether this browser keeps the model, or has begun to. */
  load(
    request: LoadRequest,
    onProgress: (progress: Progress) => void,
    onWarning: (warning: string) => void,
  ): Promise<boolean>;
  /** Resolves when the generation has begun. Its result must be taken by next() or stop(). */
  start(call: Call, request: GenerateRequest): Promise<void>;
  next(id: string): Promise<Batch>;
  /** Computes the embedding of each text, one after the other, and returns them in the order of the texts. */
  embed(call: Call, request: EmbedRequest): Promise<Float32Array[]>;
  /**
   * Ends a call, which may wait for its turn, and forgets it. Returns the result of a generation. Its text, and its
   * sequence if no later call has changed it, then ends with its first `shown` pieces, by default those that next()
   * gave.
   */
  stop(id: string, shown?: number): GenerationResult | undefined;
  /** Ends the sequence after `position` tokens. */
  rewind(call: Call, position: number): Promise<void>;
  /** Returns the file of the sequence, and stores it under a name if one is given. */
  save(call: Call, request: SaveRequest): Promise<Blob>;
  /** Replaces the sequence by that of a file, or of the stored file of that name. */
  restore(call: Call, from: Blob | string): Promise<Restored>;
  stats(): Stats;
  trace(): Trace;
  /** Returns the text of a conversation. */
  render(chat: ChatRequest): string;
  tokenize(text: string, special: boolean): Uint32Array;
  detokenize(tokens: Uint32Array, special: boolean): string;
  info(): ModelInfo;
  /** Releases the cache for other tabs. */
  close(): Promise<void>;
}

export type Method = keyof EngineWorker;

/** The same calls from another thread or tab. */
export type RemoteEngine = {
  [M in Method]: (...args: Parameters<EngineWorker[M]>) => Promise<Reply<Awaited<ReturnType<EngineWorker[M]>>>>;
};

/** Returns a remote engine that passes its calls to `ask`, except the calls in `own`. */
export function remoteEngine(
  ask: (method: Method, args: unknown[]) => Promise<Reply<unknown>>,
  own: Partial<RemoteEngine> = {},
): RemoteEngine {
  const call = (method: Method) => own[method] ?? ((...args: unknown[]) => ask(method, args));
  return new Proxy(own as RemoteEngine, { get: (_, name) => (name === 'then' ? undefined : call(name as Method)) });
}

/** Returns the result of `work` as a Reply, an exception included. */
export async function reply<T>(work: () => Promise<T> | T): Promise<Reply<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (thrown) {
    return { ok: false, error: errorInfo(thrown) };
  }
}

/** Returns a remote engine that calls a worker in the same thread. */
export const answering = (worker: EngineWorker): RemoteEngine =>
  remoteEngine((method, args) => reply(() => (worker[method] as (...args: unknown[]) => unknown)(...args)));

/** Returns the value, or throws the error as a QSFError. */
export function unwrap<T>(reply: Reply<T>): T {
  if (reply.ok) return reply.value;
  const { code, sentence, ...place } = reply.error;
  throw new QSFError(code, sentence, place);
}
