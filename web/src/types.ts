// The package's public types.
import type {
  EmbeddingOptions,
  End,
  KvType,
  OpenOptions,
  Pooling,
  PromptOptions,
  Region,
  SamplerOptions,
} from './boundary.gen.js';

export type { End, KvType, Pooling, Region };

/**
 * Where a model comes from: an http(s) address (relative ones are resolved against the page), a local file, or bytes. In
 * Node a text without http(s) is a file's path, and file: addresses are read too.
 */
export type ModelSource = string | URL | Blob | FileSystemFileHandle | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/**
 * The WebAssembly builds: `relaxed` uses the relaxed integer dot product, `relaxedpairs` that of pairs, which is faster where
 * processors have no instruction for the former (x86 without AVX-VNNI), `simd` runs everywhere else.
 */
export type Variant = 'relaxed' | 'relaxedpairs' | 'simd';

export interface Progress {
  /** `open`: tables are read and the memory plan is made. `download`: weights arrive. `ready`: load() is about to resolve. */
  phase: 'open' | 'download' | 'ready';
  /** Bytes of the model that are here and verified, of `total`. */
  loaded: number;
  total: number;
  /** Bytes taken from the network and from the cache since load() began. */
  network: number;
  cache: number;
}

export interface LoadOptions extends Partial<Pick<OpenOptions, 'maxSeqLen' | 'streamAll'>> {
  /**
   * Bytes of WebAssembly memory, created once at this size (rounded up to 64 KiB) and never grown; at most 4 GiB - 64 KiB.
   * Default 256 MiB.
   */
  memory?: number;
  onProgress?: (progress: Progress) => void;
  /** Told of what is slower or costlier than it should be, such as a cache that was refused. Default: the console. */
  onWarning?: (warning: string) => void;
  /** Aborting rejects with the signal's reason; what was verified so far stays in the cache. */
  signal?: AbortSignal;
  /** Key and value cache precision. Default: what suits the weights and the budget. */
  kv?: KvType;
  /** Keep the model in the browser's private file system. Default true; has no effect on a Blob. */
  cache?: boolean;
  /**
   * Bytes that all kept models may take together: those opened longest ago and not open now are removed for this one,
   * and one that is larger by itself is not kept. Default: what the browser gives.
   */
  cacheLimit?: number;
  /**
   * One engine for all tabs of this origin that open the same address with the same options: its memory is taken once, and
   * generations take turns. Where a browser cannot, each tab has its own. Default false.
   */
  shared?: boolean;
  /** Ask the browser to keep the model also when the disk is full; Firefox asks its user. Default true. */
  persist?: boolean;
  /** Resolve as soon as the memory plan stands; the rest streams in behind the first prompt. Default false. */
  background?: boolean;
  /** Force a WebAssembly build. Default: chosen by detection. */
  variant?: Variant;
  /**
   * Threads that compute, at most 8; more than one needs a cross-origin isolated page. Default: 1 in a page that is not,
   * else half of the processors that the browser tells of, but 2 to 4, of which tokens are made by as many as are fastest at
   * the moment. Never changes a result.
   */
  threads?: number;
  network?: NetworkOptions;
  /** Where the package's `worker.js` is, if not beside the script; another origin must share it (CORS). */
  workerUrl?: string | URL;
  /**
   * Where the package's .wasm files are, if not beside the worker's script: their folder, with a slash at its end, or the
   * one of them that suits `variant` and `threads` (1 unless given).
   */
  wasmUrl?: string | URL;
  /** The bytes of the .wasm file that suits `variant` and `threads` (1 unless given). */
  wasmBinary?: ArrayBuffer | ArrayBufferView<ArrayBuffer>;
}

export interface NetworkOptions {
  /** Sent with every request, such as Authorization. */
  headers?: Record<string, string>;
  credentials?: RequestCredentials;
  /** Further tries after a failure that brought no bytes. Default 5. */
  retries?: number;
  /** Milliseconds before the first retry; doubled each time, with jitter, up to 20 s. Default 400. */
  retryDelay?: number;
  /** Requests in flight. Default 3. */
  parallel?: number;
  /** Milliseconds without a byte after which a request is given up and retried. Default 30 000. */
  timeout?: number;
}

export interface GenerateOptions
  extends Partial<SamplerOptions>, Partial<Omit<PromptOptions, 'allLogits' | 'logitsFrom'>> {
  /** Same model, options and seed: same tokens, on every machine. Default: random. */
  seed?: number;
  /** Generation ends before any of these strings; at most 8. */
  stop?: string | readonly string[];
  /** Aborting ends the generation within 50 ms and rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Append to the sequence of the last generation instead of beginning a new one. Default false. */
  continue?: boolean;
}

export interface EmbedOptions extends Partial<EmbeddingOptions> {
  /** How last hidden states become an embedding. Default: as the model's own files say. */
  pooling?: Exclude<Pooling, 'none'>;
  /** Divide by the length. Default: as the model's own files say. */
  normalize?: boolean;
  /** Aborting ends the computation and rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Text, or token ids to which nothing is added. */
export type Prompt = string | readonly number[] | Uint32Array;

export interface MemoryRegion {
  region: Region;
  /** What the region is called where it is shown. */
  name: string;
  bytes: number;
}

export interface GenerationStats {
  /** Tokens of the prompt, and ids generated so far; stays after the generation has ended. */
  promptTokens: number;
  tokens: number[];
  running: boolean;
  /** Why it ended; undefined while running. */
  end?: Exclude<End, 'none'>;
  /** Milliseconds from the call to the first token, waiting for bytes included. */
  firstTokenMs?: number;
  /** After the first token, waiting for a slow consumer excluded. */
  tokensPerSecond?: number;
  /** Hex SHA-256 over the rows of logits, where it was asked for. */
  logitsHash?: string;
  seed: number;
}

/** How a generation went. */
export interface GenerationResult extends Omit<GenerationStats, 'running'> {
  end: Exclude<End, 'none'>;
}

/** Pieces of text, and when they have ended, how it went: what the iteration returns, or rejects with. */
export interface GenerationStream extends AsyncGenerator<string, GenerationResult, undefined> {
  readonly result: Promise<GenerationResult>;
}

export interface Stats {
  model: {
    bytes: number;
    weightBytes: number;
    /** Hex SHA-256 over the header, index, directory and tables. */
    hash: string;
    layers: number;
    vocabSize: number;
    /** Width of the model: values of an embedding. */
    dim: number;
  };
  memory: {
    /** What load() was asked for, rounded up to 64 KiB. */
    budget: number;
    /** Size of the WebAssembly memory; equals `budget`, always. */
    wasm: number;
    /** The arena's regions; what is left of the budget is the module's own stack and static data. */
    map: MemoryRegion[];
  };
  plan: {
    /** The memory map by kind; with the host's reserve these add up to the budget. */
    pinnedBytes: number;
    ringBytes: number;
    kvBytes: number;
    scratchBytes: number;
    fixedBytes: number;
    freeBytes: number;
    segments: number;
    pinnedSegments: number;
    ringSlots: number;
    /** Each segment of the file, in file order: its bytes in memory, and whether it stays there. */
    residency: { bytes: number; pinned: boolean }[];
    kv: KvType;
    maxSeqLen: number;
    chunk: number;
  };
  engine: {
    variant: Variant;
    isa: string;
    /** That compute; fixed by load(). */
    threads: number;
    /** Kernels by operation and weight or cache format (empty where there is one only), with their calls. */
    kernels: { op: string; type: string; calls: number }[];
  };
  io: {
    /** Bytes received from the network, read from the cache or from a Blob, and handed to the engine, since load(). */
    network: number;
    cache: number;
    blob: number;
    engine: number;
    /** HTTP requests made, retries included. */
    requests: number;
    /**
     * `off`: not asked for, not available, or given up; `shared`: another tab owns the file and this one reads it;
     * `partial` and `complete`: this tab owns it.
     */
    cacheState: 'off' | 'shared' | 'partial' | 'complete';
    /** Verified bytes in the cache. */
    cachedBytes: number;
    /** Bytes that the network gives for every token: of what does not stay in memory, where no cache has all of it. */
    networkPerToken: number;
  };
  /** The current or last generation. */
  generation?: GenerationStats;
  /** Tokens in the key and value cache. */
  position: number;
}

/** Something that the worker did, in milliseconds of its own clock. */
export interface Span {
  /** `read`: a segment comes into memory; `wait`: nothing can be computed before one has; `compute`: the engine runs. */
  kind: 'read' | 'wait' | 'compute';
  begin: number;
  /** Undefined while it goes on. */
  end?: number;
  /** Of a read: which of `stats().plan.residency`. */
  segment?: number;
}

/** The last few hundred spans, in the order in which they began. */
export interface Trace {
  now: number;
  spans: Span[];
}

export interface CacheEntry {
  url: string;
  /** Bytes that are here and verified, of `total`; 0 of 0 for a model that is not in the cache. */
  bytes: number;
  total: number;
  /** Everything the model needs is here; it opens without the server. */
  complete: boolean;
  /** When it was last opened by a tab that owns it, in milliseconds since 1970. */
  used?: number;
}

export interface CacheUsage {
  models: number;
  /** Verified bytes of all models. */
  bytes: number;
  /** What the browser may give this origin for everything that it keeps. */
  quota?: number;
  /** The browser keeps what is here until somebody removes it, also when the disk is full. */
  persisted: boolean;
}

export interface PruneOptions {
  /** That all models together may take. Default: any. */
  maxBytes?: number;
  /** Milliseconds since a model was last opened. Default: any. */
  maxAge?: number;
}
