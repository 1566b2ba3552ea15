// Made by scripts/gen-boundary.mjs from include/qsf/base/boundary.def.

/** The least value of a number that must be above 0. */
export const ABOVE_ZERO = 2 ** -126;

/** What an option may be; flags have no limits. */
export interface OptionRule<T> {
  readonly type: 'u32' | 'u64' | 'real' | 'flag';
  readonly fallback: T;
  readonly least: number;
  readonly most: number;
}

export type OptionRules<T> = { readonly [K in keyof T]: OptionRule<T[K]> };

/** Results of a step, by number. */
export const steps = [
  'working', // Some work was done and more is left: call step() again.
  'need_bytes', // No work is possible until a request completes.
  'logits', // Rows of logits are ready, for a prompt that asked for all of them.
  'token', // A token was sampled; its text may be shown.
  'done', // A generation has ended; end() is the reason.
  'ready', // Nothing runs.
  'error', // The session failed; error() is the reason.
  'embedding', // An embedding, or the last hidden states of some positions, are ready.
] as const;
export type Step = (typeof steps)[number];

/** Reasons for the end of a generation, by number. */
export const ends = [
  'none', // The generation has not ended, or there was none.
  'eos', // The token that was sampled ends a text.
  'stop', // The text reached a stop string.
  'length', // The generation has as many tokens as the prompt allows.
  'context', // The sequence is as long as its context.
  'cancelled', // The caller stopped it.
  'error', // The generation failed.
] as const;
export type End = (typeof ends)[number];

/** Ways to reduce last hidden states to an embedding, by number. */
export const poolings = [
  'none', // No pooling: the last hidden states of every position.
  'mean', // The mean over all positions.
  'first', // The last hidden state of the first position.
  'last', // The last hidden state of the last position.
] as const;
export type Pooling = (typeof poolings)[number];

/** Languages of grammars, by number. */
export const grammarKinds = [
  'gbnf', // A grammar in GBNF.
  'regex', // A regular expression of the whole text.
  'json_schema', // A JSON value that a JSON schema allows.
] as const;
export type GrammarKind = (typeof grammarKinds)[number];

/** Types of the KV cache, finest first, by number. */
export const kvTypes = [
  'f32', // Floats as computed.
  'f16', // Rounded to binary16.
  '8bit', // A float scale and int8 codes for each head.
  '4bit', // Scale, minimum and 4-bit codes for 32 values.
  '2bit', // Scale, minimum and 2-bit codes for 32 values.
] as const;
export type KvType = (typeof kvTypes)[number];

/** Uses of memory, by number. */
export const regions = [
  'session', // The session and its sequences.
  'tables', // Header, index, tensor and segment tables, program.
  'tokenizer', // The tokenizer's section and scratch.
  'pinned', // Segments that are pinned.
  'ring', // Slots that segments are streamed through.
  'lanes', // Keys and values, and states, of every sequence.
  'activations', // The columns of a pass.
  'logits', // Logits and the sampler's scratch.
  'embedding_rows', // The rows of the embedding that were used last.
  'host', // Outside the arena, for the host's stack and static data.
  'free', // Not used by the plan.
  'texts', // Chat templates, conversations and grammars.
] as const;
export type Region = (typeof regions)[number];

/** The names to users. */
export const regionNames: Readonly<Record<Region, string>> = {
  session: 'session',
  tables: 'tables',
  tokenizer: 'tokenizer',
  pinned: 'pinned weights',
  ring: 'ring',
  lanes: 'kv cache',
  activations: 'activations',
  logits: 'logits',
  embedding_rows: 'embedding rows',
  host: 'host reserve',
  free: 'free',
  texts: 'texts',
};

/** Options of an opening. */
export interface OpenOptions {
  /** Longest context in tokens. 0: as many as fit next to all weights, at most the model's own; if weights are streamed, as many as fit in a sixteenth of the weights' bytes or of the budget, whichever is smaller, but at least 256. Default 0; a whole number from 0 to 16777216. */
  maxSeqLen: number;
  /** Sequences that the session has at once. Default 1; a whole number from 1 to 64. */
  sequences: number;
  /** Columns of a pass; 0: the plan's choice. Default 0; a whole number from 0 to 4096. */
  chunk: number;
  /** Slots of the ring; 0: the plan's choice. Default 0; a whole number from 0 to 64. */
  ringSlots: number;
  /** Pin only the segments that must be pinned, and use the smallest ring. Default false. */
  streamAll: boolean;
  /** Check a segment's CRC each time that it is read, not only the first time; for a source whose bytes may change. Default false. */
  recheck: boolean;
  /** Reserve memory for the logits of a whole pass. Default false. */
  allLogits: boolean;
  /** Rate in MB/s at which the host reads the file, as it measured; 0: not known. For estimates only. Default 0; a whole number from 0 to 4294967295. */
  readRate: number;
  /** Rate in MB/s at which the kernels multiply weights, as the host measured; 0: not known. For estimates only. Default 0; a whole number from 0 to 4294967295. */
  computeRate: number;
  /** Others, such as a server, see the reads of the file. Then no read depends on the text, except those of experts that are not resident. A pass reads the whole part of the embedding that the plan does not pin. Default false. */
  watched: boolean;
  /** Bytes for chat templates, conversations and grammars, which may also use the free bytes of the plan; 0: if the file has a chat template, 512 KiB and 96 bytes for each token of context, else none. Default 0; a whole number from 0 to 1073741824. */
  textBytes: number;
}

export const openOptions: OptionRules<OpenOptions> = {
  maxSeqLen: { type: 'u32', fallback: 0, least: 0, most: 16777216 },
  sequences: { type: 'u32', fallback: 1, least: 1, most: 64 },
  chunk: { type: 'u32', fallback: 0, least: 0, most: 4096 },
  ringSlots: { type: 'u32', fallback: 0, least: 0, most: 64 },
  streamAll: { type: 'flag', fallback: false, least: 0, most: 1 },
  recheck: { type: 'flag', fallback: false, least: 0, most: 1 },
  allLogits: { type: 'flag', fallback: false, least: 0, most: 1 },
  readRate: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
  computeRate: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
  watched: { type: 'flag', fallback: false, least: 0, most: 1 },
  textBytes: { type: 'u32', fallback: 0, least: 0, most: 1073741824 },
};

/** Options of sampling. */
export interface SamplerOptions {
  /** Divisor of the logits; 0: always the most likely token. Default 0.7; 0 to 3.4e+38. */
  temperature: number;
  /** Sample among this many of the likeliest tokens; 0: all. Default 40; a whole number from 0 to 4294967295. */
  topK: number;
  /** Sample among the likeliest tokens whose probabilities sum to this share; 1: all. Default 0.9; above 0 and at most 1. */
  topP: number;
  /** Penalty on every token of the context, as in CTRL (Keskar et al. 2019); 1: none. Default 1; above 0 and at most 3.4e+38. */
  repetitionPenalty: number;
  /** The same model, options and seed give the same tokens on every machine. Default 0; a whole number from 0 to 9007199254740991. */
  seed: number;
}

export const samplerOptions: OptionRules<SamplerOptions> = {
  temperature: { type: 'real', fallback: 0.7, least: 0, most: 3.4e38 },
  topK: { type: 'u32', fallback: 40, least: 0, most: 4294967295 },
  topP: { type: 'real', fallback: 0.9, least: ABOVE_ZERO, most: 1 },
  repetitionPenalty: { type: 'real', fallback: 1, least: ABOVE_ZERO, most: 3.4e38 },
  seed: { type: 'u64', fallback: 0, least: 0, most: 9007199254740991 },
};

/** Options of a prompt. */
export interface PromptOptions {
  /** Most tokens to generate; 0: only the prompt is computed. Default 256; a whole number from 0 to 4294967295. */
  maxTokens: number;
  /** Add the model's begin token, if it has one, before a text that begins a sequence. Default true. */
  addBos: boolean;
  /** Added tokens such as <|endoftext|> in the text become their ids. Default true. */
  special: boolean;
  /** Continue after a token that ends a text. Default false. */
  ignoreEos: boolean;
  /** Compute the SHA-256 of every row of logits, in order. Default false. */
  logitsHash: boolean;
  /** Return Step::logits for every position, not only for those that a token is sampled from. Default false. */
  allLogits: boolean;
  /** With all logits: the first position of the sequence whose logits are returned. Default 0; a whole number from 0 to 4294967295. */
  logitsFrom: number;
}

export const promptOptions: OptionRules<PromptOptions> = {
  maxTokens: { type: 'u32', fallback: 256, least: 0, most: 4294967295 },
  addBos: { type: 'flag', fallback: true, least: 0, most: 1 },
  special: { type: 'flag', fallback: true, least: 0, most: 1 },
  ignoreEos: { type: 'flag', fallback: false, least: 0, most: 1 },
  logitsHash: { type: 'flag', fallback: false, least: 0, most: 1 },
  allLogits: { type: 'flag', fallback: false, least: 0, most: 1 },
  logitsFrom: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
};

/** Options of an embedding. */
export interface EmbeddingOptions {
  /** Add the tokens that the model expects before and after a text, if any. Default true. */
  addBos: boolean;
  /** Added tokens such as [MASK] in the text become their ids. Default true. */
  special: boolean;
}

export const embeddingOptions: OptionRules<EmbeddingOptions> = {
  addBos: { type: 'flag', fallback: true, least: 0, most: 1 },
  special: { type: 'flag', fallback: true, least: 0, most: 1 },
};

/** Statistics of a session. */
export interface SessionStats {
  /** Bytes of the budget, with everything included. */
  budget: number;
  /** Bytes of the file. */
  modelBytes: number;
  /** Bytes of all segments, decompressed. */
  weightBytes: number;
  /** Bytes of the pinned segments. */
  pinnedBytes: number;
  /** Segments of the file. */
  segments: number;
  /** Segments that are pinned. */
  pinnedSegments: number;
  /** Slots of the ring; 0: no segment is streamed. */
  ringSlots: number;
  /** Bytes of the ring. */
  ringBytes: number;
  /** Positions of context of each sequence. */
  maxSeqLen: number;
  /** The longest context that the model was made for. */
  modelSeqLen: number;
  /** Most columns of a pass. */
  chunk: number;
  /** Sequences of the session. */
  sequences: number;
  /** Tokens of the vocabulary. */
  vocabSize: number;
  /** Layers of the model. */
  layers: number;
  /** Width of the model, which is the length of an embedding. */
  dim: number;
  /** Type of keys and values in the cache. */
  kv: KvType;
  /** The instruction set of the kernels. */
  isa: string;
  /** Bytes that the session has requested so far. */
  bytesRead: number;
  /** Bytes of weights that the plan reads for each token of a generation. */
  tokenBytes: number;
  /** Estimated tokens/s of a generation early in the context; 0: the host has not measured. */
  tokenRate: number;
  /** The budget that pins every segment, with a context at least as long. */
  residentBudget: number;
  /** Estimated tokens/s with that budget; 0: the host has not measured. */
  residentRate: number;
  /** Experts that layers selected so far, each counted once for all columns of a pass. */
  expertsChosen: number;
  /** Selected experts that were wholly in memory when they were selected. */
  expertsFound: number;
  /** Bytes of experts that the session has requested so far. */
  expertBytes: number;
  /** Reason why the context is not longer. */
  contextReason: string;
  /** Reason for the type of keys and values. */
  kvReason: string;
  /** Part of a sentence that names the changes that would allow more tokens. */
  moreContext: string;
  /** A sentence if the plan, without a request of the caller, can make text worse; else empty. */
  warning: string;
}

/** Statistics of a sequence. */
export interface SequenceStats {
  /** Tokens in the KV cache. */
  position: number;
  /** Tokens of the prompt of the current or last generation, with earlier tokens that were not fed yet. */
  promptTokens: number;
  /** Tokens that the current or last generation has made. */
  generatedTokens: number;
}

/** A request to read, in WebAssembly. */
export interface ReadRequest {
  /** Offset of the first byte in the file. */
  offset: number;
  /** Bytes to read. */
  size: number;
  /** The number of the request for complete() and fail(). */
  ticket: number;
  /** Address for the bytes. */
  into: number;
  /** CRC-32 of the bytes, if it is known. */
  crc: number;
  /** Whether the CRC-32 is known. */
  hasCrc: boolean;
}

/** A segment, in WebAssembly. */
export interface Segment {
  /** Offset of the first byte in the file. */
  offset: number;
  /** Bytes in the file. */
  size: number;
  /** Bytes in memory. */
  rawSize: number;
  /** CRC-32 of the bytes in the file. */
  crc: number;
  /** Whether the segment is pinned. */
  pinned: boolean;
  /** Whether the segment is read when a text needs it, instead of by every pass. */
  byText: boolean;
}

/** A region of memory, in WebAssembly. */
export interface RegionBytes {
  /** The region's name. */
  region: Region;
  /** Bytes of the region. */
  bytes: number;
}

/** Calls of a kernel, in WebAssembly. */
export interface KernelCount {
  /** The operation, such as matmul. */
  op: string;
  /** The type of the weights, such as 8bit; empty if the operation has only one kernel. */
  type: string;
  /** Number of calls. */
  calls: number;
}

/** A local time, in WebAssembly. */
export interface LocalTime {
  /** The year. */
  year: number;
  /** From 1. */
  month: number;
  /** The day of the month, from 1. */
  day: number;
  /** The hour, from 0. */
  hour: number;
  /** The minute, from 0. */
  minute: number;
  /** The second, from 0. */
  second: number;
}

/** What failed, in WebAssembly. */
export interface Failure {
  /** The error's number in errors.def. */
  code: number;
  /** The error's sentence. */
  sentence: string;
}

/** Calls of a session, in WebAssembly. */
export interface Session {
  /** Begins a session with a file of that size and forgets an earlier session. The arena stays the same block. Without kv, the plan selects the type. */
  open(budget: number, size: number, kv: KvType | undefined, options: OpenOptions): Failure | undefined;
  /** Ends the threads, because a browser waits for them before it ends their workers. */
  close(): void;
  /** Steps for about a millisecond, or until a request or a result for the host. */
  step(): Step;
  /** Returns the next request to read, or undefined. */
  nextRequest(): ReadRequest | undefined;
  /** Returns the CRC-32 of bytes in the arena, several times as fast as JavaScript. */
  crc32(at: number, size: number): number;
  /** Checks and unpacks the bytes of a request. A failure is also the result of the next step. */
  complete(ticket: number): Failure | undefined;
  /** Ends a request with an error, whose sentence is staged. */
  fail(ticket: number, code: number, size: number): void;
  /** Returns memory for the arguments of the next call, or undefined if there is not enough. */
  stage(size: number): Uint8Array | undefined;
  /** Begins a generation that continues the sequence. Staged are a text of that many bytes, or token ids if its size is 0, and then the stop strings, each with a zero byte at its end. */
  start(
    sequence: number,
    text: number,
    tokens: number,
    stops: number,
    sampler: SamplerOptions,
    options: PromptOptions,
  ): Failure | undefined;
  /** Clears the sequence and begins an embedding. The text or tokens are staged as for start(). Without a pooling or normalize, the model's own is used. */
  embed(
    sequence: number,
    text: number,
    tokens: number,
    pooling: Pooling | undefined,
    normalize: boolean | undefined,
    options: EmbeddingOptions,
  ): Failure | undefined;
  /** Makes the grammar of the next generation, whose text is staged. It may take the place of the last conversation. */
  guide(kind: GrammarKind | undefined, size: number): Failure | undefined;
  /** Renders a conversation and computes its token ids. Staged are a template of that many bytes, or of 0 for the file's own, and two JSON objects with its variables; the second may have 0 bytes. */
  converse(chat_template: number, values: number, more: number, now: LocalTime): Failure | undefined;
  /** Returns the text of the last conversation. */
  conversation(): Uint8Array;
  /** Begins a generation that answers the last conversation and ends as its template says. The sequence keeps the tokens that begin the conversation. The stop strings are staged as for start(). */
  answer(sequence: number, stops: number, sampler: SamplerOptions, options: PromptOptions): Failure | undefined;
  /** Stops a generation or an embedding. */
  stop(sequence: number): void;
  /** Forgets all tokens of the sequence except the first n. */
  rewind(n: number, sequence: number): Failure | undefined;
  /** Requests every pinned segment; step() returns ready when they are resident. Ends all generations. */
  preload(): Failure | undefined;
  /** Returns the reason after the step error. */
  error(): Failure;
  /** Returns the sequence that the last step belongs to. */
  sequence(): number;
  /** Returns the id of the token, after the step token. */
  token(): number;
  /** Returns the text that may be shown now, after the steps token and done. */
  piece(): string;
  /** Returns the values of the embedding, after the step embedding. */
  embedding(): Float32Array;
  /** Returns the reason why the sequence's generation ended. */
  end(sequence: number): End;
  /** Returns the token ids of the staged text. The staged memory must have room for them after the text. */
  tokenize(size: number, special: boolean): Uint32Array | Failure;
  /** Returns the bytes of a token, which may be a part of a character. */
  detokenize(token: number): Uint8Array;
  /** Returns statistics of the session. */
  stats(): SessionStats;
  /** Returns statistics of a sequence. */
  sequenceStats(sequence: number): SequenceStats;
  /** Returns the bytes of each region of memory. */
  memoryMap(): RegionBytes[];
  /** Returns the number of calls of each kernel. */
  kernelCounts(): KernelCount[];
  /** Returns the segments of the file, after the session has opened. */
  segments(): Segment[];
  /** Returns the SHA-256 of header, index, directory and tables, in hexadecimal. */
  modelHash(): string;
  /** Returns the SHA-256 of the logits of the current or last generation, in hexadecimal. */
  logitsHash(sequence: number): string;
}
