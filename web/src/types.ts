// The package's public types.
import type { DraftOptions, DraftStats } from './draft-types.js';
import type { ResponseFormat } from './format-types.js';
import type { InSequence, SequenceOptions } from './sequence-types.js';
import type { Progress } from './progress-types.js';
import type { KvKept, KvPolicyOptions } from './kv-policy-types.js';
import type { GeneratedToken } from './token-types.js';
import type {
  EmbeddingOptions,
  End,
  KvType,
  OpenOptions,
  Pooling,
  PromptOptions,
  QuantType,
  Region,
  SamplerKind,
  SamplerOptions,
} from './boundary.gen.js';

export type { End, KvType, Pooling, QuantType, Region, SamplerKind };

/** Options of which each may be omitted. Undefined means omitted. */
export type Given<T> = { [K in keyof T]?: T[K] | undefined };

/**
 * The model, a .qsf or GGUF file: an http(s) address (a relative one is resolved against the page), a local file, or
 * bytes. The parts of a divided GGUF file, or the files of a Hugging Face directory, are a list of files, a handle of
 * their directory, or the directory's address, which ends with a slash. `hf:OWNER/NAME[/FILE][@REVISION]` is a file of the
 * Hugging Face Hub; without FILE the largest model that fits in the memory, else the smallest, or the directory. In Node,
 * a text without http(s) is a file's path, and file: addresses are accepted too.
 */
export type ModelSource =
  | string
  | URL
  | Blob
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | FileList
  | readonly File[]
  | ArrayBuffer
  | ArrayBufferView;

/**
 * The WebAssembly builds. `relaxed` uses the relaxed dot product that sums four integer products. `relaxedpairs` uses
 * the one that sums two, which is faster on processors without an instruction for the former (x86 without AVX-VNNI).
 * `simd` runs everywhere else.
 */
export type Variant = 'relaxed' | 'relaxedpairs' | 'simd';

type Planned =
  | 'maxSeqLen'
  | 'sequences'
  | 'guesses'
  | 'guessByLayers'
  | 'guessLayers'
  | 'guessByHead'
  | 'logprobs'
  | 'streamAll'
  | 'textBytes';

export interface LoadOptions
  extends Given<Pick<OpenOptions, Planned | 'readRate' | 'computeRate'>>, KvPolicyOptions, DraftOptions {
  /**
   * Bytes of WebAssembly memory, allocated once at this size (rounded up to 64 KiB) and never grown; at most 4 GiB - 64
   * KiB. Default 256 MiB. load() rejects with budget_too_small if the model needs more, and with out_of_memory if the
   * browser refuses the memory.
   */
  memory?: number | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Gets a sentence about anything that is slower, costlier or worse than it should be: a cache that the browser
   * refused, keys and values of fewer bits than f16, a context beyond the model's own, a server that failed and is
   * asked again. Also gets a sentence about experts whose reads reveal some of the text to a server. Default: the
   * console.
   */
  onWarning?: ((warning: string) => void) | undefined;
  /** An abort rejects with the signal's reason; verified bytes stay in the cache. */
  signal?: AbortSignal | undefined;
  /**
   * Bits of keys and values (k8v4: 8 and 4). Default: f16 (f32 for f32 weights). If the memory has no room for
   * `maxSeqLen` tokens (256 if not given), the default has fewer bits, and `onWarning` gets a sentence.
   */
  kv?: KvType | undefined;
  /**
   * The SHA-256 of the model's bytes in hexadecimal. load() rejects with bad_checksum for another file. The whole file
   * is read once before it is opened, and bytes that the browser does not keep are read again afterwards: a server can
   * then answer differently without being noticed. bad_argument for a model of another kind than .qsf.
   */
  sha256?: string | undefined;
  /**
   * The type that all matrices are rounded to while they are read, as by `--quant-type` of the programs. Default: a GGUF
   * file's own types, and 8bit for float weights. load() rejects with bad_argument for a .qsf file, which keeps its types.
   */
  quantType?: QuantType | undefined;
  /**
   * Keep the model in the browser's private file system. The streamed weights of a File or Blob are copied there until
   * close(). Default true.
   */
  cache?: boolean | undefined;
  /**
   * Bytes that all kept models may take together. Models that are not open are removed for this one, those opened
   * longest ago first. A model larger than the limit is not kept. A copy of a file has at most this many
   * bytes. Default: the browser's own limit.
   */
  cacheLimit?: number | undefined;
  /**
   * Share one engine among all tabs of this origin that open the same address with the same options. Its memory is
   * allocated once. If the browser cannot do this, each tab has its own engine. Default false.
   */
  shared?: boolean | undefined;
  /** Ask the browser to keep the model even when the disk is full; Firefox asks its user. Default true. */
  persist?: boolean | undefined;
  /**
   * Resolve as soon as the memory plan is made. The rest streams in while the first prompt is computed. Until the model
   * is opened again, each token reads the whole streamed part of the embedding, because its server may see these reads.
   * Default false.
   */
  background?: boolean | undefined;
  /**
   * Resolve as soon as the memory plan is made, and fetch only the bytes that a call needs: tokenize(), render() and
   * info() need no weights, and a generation fetches those that it needs. Reads as with `background`. Default false.
   */
  lazy?: boolean | undefined;
  /** Force a WebAssembly build. Default: chosen by detection. */
  variant?: Variant | undefined;
  /**
   * Threads that compute, 1 to 8. More than one needs a cross-origin isolated page; otherwise load() rejects with
   * unsupported_host. Default: 1 in a page without isolation, else half of the processors that the browser reports, at
   * least 2 if there are 2, and at most 4; tokens then use as many of these threads as are fastest at the moment, or
   * the fewest that are about as fast. Never changes a result.
   */
  threads?: number | undefined;
  network?: NetworkOptions | undefined;
  /** Address of the package's `worker.js`. Default: next to the script. Another origin must share it (CORS). */
  workerUrl?: string | URL | undefined;
  /**
   * Address of the folder of the package's .wasm files, with a slash at its end, or of the one file that suits
   * `variant` and `threads` (1 unless given). Default: next to the worker's script.
   */
  wasmUrl?: string | URL | undefined;
  /** The bytes of the .wasm file that suits `variant` and `threads` (1 unless given). */
  wasmBinary?: ArrayBuffer | ArrayBufferView | undefined;
}

export interface NetworkOptions {
  /** Headers sent with every request, such as Authorization: a Headers object, or the values that make one. */
  headers?: HeadersInit | undefined;
  credentials?: RequestCredentials | undefined;
  /** Further tries after a failure that brought no bytes. Default 5. */
  retries?: number | undefined;
  /** Milliseconds before the first retry; doubled each time, with jitter, up to 20 s. Default 400. */
  retryDelay?: number | undefined;
  /** Requests in flight. Default 3. */
  parallel?: number | undefined;
  /** Milliseconds without a byte after which a request is given up and retried. Default 30 000. */
  timeout?: number | undefined;
}

export interface GenerateOptions
  extends SequenceOptions, Given<SamplerOptions>, Given<Omit<PromptOptions, 'allLogits' | 'logitsFrom' | 'anew'>> {
  /** Same model, options and seed: same tokens, on every machine. Default: random. */
  seed?: number | undefined;
  /**
   * Numbers that are added to the logits of tokens, by token id, as in OpenAI's interface. A token with -Infinity is
   * never generated.
   */
  logitBias?: Readonly<Record<number, number>> | undefined;
  /**
   * The samplers in the order in which they are applied; one that is absent does nothing, even if its options are set.
   * Default: all of them.
   */
  samplers?: readonly SamplerKind[] | undefined;
  /**
   * Texts that end repetitions for the sampler `dry`; at most 16. Default: a line end, a colon, a quotation mark and an
   * asterisk.
   */
  drySequenceBreakers?: readonly string[] | undefined;
  /** Texts that may be generated. A model's text ends when it is one of them. Default: any. */
  responseFormat?: ResponseFormat | undefined;
  /** Gets the progress of the prompt, ten times a second at most, and when it is computed. */
  onPromptProgress?: ((progress: PromptProgress) => void) | undefined;
  /** Generation ends before any of these strings; at most 8. */
  stop?: string | readonly string[] | undefined;
  /** An abort ends the generation within 50 ms and rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /**
   * Append to the sequence of the last generation instead of beginning a new one. The sequence ends with the text that
   * was shown. It does not contain text that was generated ahead, nor the stop string that was reached. Default false:
   * tokens at the prompt's beginning that the sequence has already are not computed again.
   */
  continue?: boolean | undefined;
}

export interface EmbedOptions extends Given<EmbeddingOptions> {
  /** Reduction of the last hidden states to an embedding. Default: as the model's own files say. */
  pooling?: Exclude<Pooling, 'none'> | undefined;
  /** Divide by the length. Default: as the model's own files say. */
  normalize?: boolean | undefined;
  /** An abort ends the computation and rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A message of a conversation. Further members, such as `tool_calls`, are for the template. */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, or any other that the template knows. */
  role: string;
  /** A special token in a text is ordinary text. Lists of parts are for templates that have them. */
  content?: string | readonly unknown[] | null | undefined;
  [member: string]: unknown;
}

export interface TemplateOptions {
  /** A Jinja chat template that replaces the model's own. */
  template?: string | undefined;
  /** Further variables of the template, such as `enable_thinking`. */
  templateArgs?: Record<string, unknown> | undefined;
  /** Tools that the model may call, as OpenAI's interface has them. Without them an answer has no calls. */
  tools?: readonly object[] | undefined;
}

/** The template says what begins and continues a text, so those options are absent. */
export interface ChatOptions extends Omit<GenerateOptions, 'continue' | 'addBos' | 'special'>, TemplateOptions {
  /**
   * Holds calls to the schemas of `tools`: `auto` for calls that the model makes by itself, `required` for an answer
   * that begins with a call, or the one tool to call. Takes up to 24 MiB of `textBytes`. Default: calls are free.
   */
  toolChoice?: 'auto' | 'required' | { name: string } | undefined;
  /** With false an answer ends after its first call. Default true. */
  parallelToolCalls?: boolean | undefined;
  /** Tokens after which a thought is ended; 0: at once; -1: never, which is the default. */
  reasoningBudget?: number | undefined;
}

export interface SaveOptions extends SequenceOptions {
  /** The messages of the conversation that the sequence is of. restore() returns them. */
  messages?: readonly ChatMessage[] | undefined;
  /**
   * A name under which the file is also stored in the browser's private file system, in place of an earlier one. The
   * earlier file stays if the browser ends in between or has no room.
   */
  name?: string | undefined;
}

/** A sequence that restore() put in place. */
export interface Restored extends InSequence {
  /** Tokens of the sequence; `rewind()` can return to this position later. */
  position: number;
  /** The messages that save() was given. */
  messages?: ChatMessage[];
}

/** A file that save() stored under a name. */
export interface SavedEntry {
  name: string;
  bytes: number;
  /** Time of the saving in milliseconds since 1970. */
  saved: number;
}

/** Progress of the passes over a prompt. */
export interface PromptProgress {
  /** Tokens that are computed, of `total` tokens. Tokens that the sequence already had are not counted. */
  done: number;
  total: number;
}

/** Text, or token ids to which nothing is added. */
export type Prompt = string | readonly number[] | Uint32Array;

export interface MemoryRegion {
  region: Region;
  /** The region's name for display. */
  name: string;
  bytes: number;
}

export interface GenerationStats extends InSequence {
  /**
   * Tokens of the prompt, and ids generated so far; both stay after the end of the generation. A generation that was
   * stopped, by the caller or at a stop string, has the ids of the text that was shown.
   */
  promptTokens: number;
  /** Tokens of the prompt that the sequence had already, so that they were not computed again. */
  reusedTokens: number;
  tokens: number[];
  /** Tokens of the sequence including these; `rewind()` can return to this position later. */
  position: number;
  running: boolean;
  /** The reason for the end; undefined while running. */
  end?: Exclude<End, 'none'>;
  /** Milliseconds from the call to the first token, waiting for bytes included. */
  firstTokenMs?: number;
  /** Tokens per second after the first token, waiting for a slow consumer excluded. */
  tokensPerSecond?: number;
  /** Tokens that were guessed ahead, and those that were right, once the generation has ended. Absent if none was. */
  guesses?: { made: number; right: number };
  /** The log-probabilities of `tokens`, if `logprobs` was set; once the generation has ended. */
  logprobs?: GeneratedToken[];
  /** Hex SHA-256 over the rows of logits, if it was requested. */
  logitsHash?: string;
  seed: number;
}

/** The result of a generation. */
export interface GenerationResult extends Omit<GenerationStats, 'running'> {
  end: Exclude<End, 'none'>;
}

/**
 * The pieces of a text, and the generation's result at their end. Nothing is computed before it is first read: by a
 * loop, by await, by text() or by result. Awaiting gives the whole text. All of them may be used together: each gets
 * the whole text, and rejects with the same error.
 */
export interface GenerationStream<R extends GenerationResult = GenerationResult>
  extends AsyncGenerator<string, R, undefined>, PromiseLike<string> {
  /**
   * Resolves with the value that the iteration returns. Reading it generates the text to its end, without waiting for a
   * loop.
   */
  readonly result: Promise<R>;
  /** Returns the whole text, or the text until the loop was left. Pieces that a loop has had are a part of it. */
  text(): Promise<string>;
  /** As of a promise of the whole text. */
  catch: Promise<string>['catch'];
  finally: Promise<string>['finally'];
}

/** A token of the model with a meaning of its own. */
export interface SpecialToken {
  id: number;
  text: string;
}

/** A model's own information, which needs no weights. */
export interface ModelInfo {
  name: string | undefined;
  architecture: string | undefined;
  /** Tokens of the longest context that the model was made for. */
  contextLength: number;
  vocabSize: number;
  /** The model's own chat template. */
  chatTemplate: string | undefined;
  /** The token that begins a text. */
  beginToken: SpecialToken | undefined;
  /** The tokens that end a text. */
  endTokens: SpecialToken[];
}

export interface Stats {
  model: {
    bytes: number;
    weightBytes: number;
    /** Hex SHA-256 over the header, index, directory and tables. Empty for a file that was made when it was opened. */
    hash: string;
    /** The kind of the model that the file was made from, such as `GGUF`. */
    madeFrom?: string;
    layers: number;
    vocabSize: number;
    /** Width of the model: values of an embedding. */
    dim: number;
  };
  memory: {
    /** The `memory` of load() in bytes, rounded up to 64 KiB. */
    budget: number;
    /** Bytes of WebAssembly memory; always equal to `budget`. */
    wasm: number;
    /**
     * Bytes that making files of another kind takes at the moment, in addition to the budget: the module's memory and
     * each file's front. 0 for .qsf files.
     */
    maker: number;
    /** The arena's regions, and a draft model's part. The rest of the budget is the module's own stack and static data. */
    map: MemoryRegion[];
  };
  plan: KvKept & {
    /** Bytes of the memory map by kind; with the host reserve they add up to the budget. */
    pinnedBytes: number;
    ringBytes: number;
    kvBytes: number;
    scratchBytes: number;
    fixedBytes: number;
    /** The part of a draft model, with everything that it needs. */
    draftBytes: number;
    freeBytes: number;
    segments: number;
    pinnedSegments: number;
    ringSlots: number;
    /** Each segment of the file, in file order: its bytes in memory, and whether it is pinned. */
    residency: { bytes: number; pinned: boolean }[];
    kv: KvType;
    /** The reason for the type of the KV cache, as part of a sentence. */
    kvReason: string;
    maxSeqLen: number;
    /** The longest context that the model was made for, in tokens. */
    modelSeqLen: number;
    /** The limit of the context, as part of a sentence. */
    contextReason: string;
    /** Changes that make room for more tokens, as part of a sentence. */
    moreContext: string;
    chunk: number;
    sequences: number;
  };
  engine: {
    variant: Variant;
    isa: string;
    /** Threads that compute; fixed by load(). */
    threads: number;
    /**
     * Calls of kernels by operation and by format of weights or cache; `type` is empty if the operation has one kernel
     * only.
     */
    kernels: { op: string; type: string; calls: number }[];
  };
  io: {
    /** Bytes since load(): received from the network, read from the cache or from the copy of a file, read from a Blob, given to the engine. */
    network: number;
    cache: number;
    blob: number;
    engine: number;
    /** HTTP requests made, retries included. */
    requests: number;
    /**
     * `off`: not requested, not available, or given up. `shared`: another tab owns the file and this tab reads it.
     * `partial` and `complete`: this tab owns it.
     */
    cacheState: 'off' | 'shared' | 'partial' | 'complete';
    /** Verified bytes in the cache. */
    cachedBytes: number;
    /** Bytes that each token reads from the network: the streamed bytes of a pass. 0 if a cache has the whole model. */
    networkPerToken: number;
  };
  /** The draft model, if there is one. */
  draft?: DraftStats;
  /** The generation that began last. */
  generation?: GenerationStats;
  /** Tokens in the KV cache of the sequence that was used last. */
  position: number;
}

/** One activity of the worker, in milliseconds of its own clock. */
export interface Span {
  /**
   * `read`: a segment comes into memory. `wait`: nothing can be computed until a segment arrives. `compute`: the engine
   * runs.
   */
  kind: 'read' | 'wait' | 'compute';
  begin: number;
  /** Undefined while it continues. */
  end?: number;
  /** For a read, the segment's index in `stats().plan.residency`. */
  segment?: number;
}

/** The last few hundred spans, in the order of their beginnings. */
export interface Trace {
  now: number;
  spans: Span[];
}
