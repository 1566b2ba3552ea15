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

/** How what is told crosses: fields in the order of their columns, a text as its place and its size. */
export type Column = 'u32' | 'u64' | 'real' | 'flag' | 'text' | 'kv' | 'region' | 'place';
export type Columns<T> = { readonly [K in keyof T]: Column };

/** What a step did or needs, by number. */
export const steps = [
  'working', // Something was done and there is more: call step() again.
  'need_bytes', // Nothing can be done until a request is completed.
  'logits', // Rows of logits are there, for a prompt that asked for all of them.
  'token', // A token was chosen; its text may be shown.
  'done', // A generation has ended; end() says why.
  'ready', // Nothing runs.
  'error', // Something failed; error() says what.
  'embedding', // An embedding, or last hidden states of some positions, are there.
] as const;
export type Step = (typeof steps)[number];

/** Why a generation ended, by number. */
export const ends = [
  'none', // It has not ended, or there was none.
  'eos', // The model chose a token that ends a text.
  'stop', // A stop string was reached.
  'length', // As many tokens were made as were asked for.
  'context', // The sequence is as long as its context.
  'cancelled', // The caller stopped it.
  'error', // It failed.
] as const;
export type End = (typeof ends)[number];

/** How last hidden states become an embedding, by number. */
export const poolings = [
  'none', // Not at all: every position's.
  'mean', // The mean of all positions.
  'first', // The first position's.
  'last', // The last position's.
] as const;
export type Pooling = (typeof poolings)[number];

/** How keys and values are kept, finest first, by number. */
export const kvTypes = [
  'f32', // As computed.
  'f16', // Rounded to binary16.
  '8bit', // A float scale and int8 codes for each head.
  '4bit', // Scale, minimum and 4-bit codes for 32 values.
  '2bit', // Scale, minimum and 2-bit codes for 32 values.
] as const;
export type KvType = (typeof kvTypes)[number];

/** What memory is used for, by number. */
export const regions = [
  'session', // The session and its sequences.
  'tables', // Header, index, tensor and segment tables, program.
  'tokenizer', // The tokenizer's section and scratch.
  'pinned', // Segments that stay.
  'ring', // Slots that segments are streamed through.
  'lanes', // What layers keep of every sequence: keys and values, states.
  'activations', // The columns of a pass.
  'logits', // Logits and the sampler's scratch.
  'embedding_rows', // Rows of the embedding that were looked up last.
  'host', // Left to the host: stack and static data.
  'free', // Not used by this plan.
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
};

/** Options of an opening. */
export interface OpenOptions {
  /** Longest context in tokens; 0: the model's own, reduced as the budget asks. Default 0; a whole number from 0 to 16777216. */
  maxSeqLen: number;
  /** Sequences that the session can hold at once. Default 1; a whole number from 1 to 64. */
  sequences: number;
  /** Columns of a pass; 0: the plan's choice. Default 0; a whole number from 0 to 4096. */
  chunk: number;
  /** Slots that segments are streamed through; 0: the plan's choice. Default 0; a whole number from 0 to 64. */
  ringSlots: number;
  /** Pin nothing that need not be: the smallest ring. Default false. */
  streamAll: boolean;
  /** Check a segment whenever it is read, not only the first time: for a source whose bytes may change. Default false. */
  recheck: boolean;
  /** Room for the logits of a whole pass. Default false. */
  allLogits: boolean;
  /** MB that the host reads of the file in a second, as it measured; 0: not known. For what to expect only. Default 0; a whole number from 0 to 4294967295. */
  readRate: number;
  /** MB of weights that the kernels go through in a second, as the host measured; 0: not known. For what to expect only. Default 0; a whole number from 0 to 4294967295. */
  computeRate: number;
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
};

/** Options of sampling. */
export interface SamplerOptions {
  /** 0: the most likely token, always. Default 0.7; 0 to 3.4e+38. */
  temperature: number;
  /** Choose among so many of the likeliest tokens; 0: all. Default 40; a whole number from 0 to 4294967295. */
  topK: number;
  /** Choose among the likeliest tokens of this share; 1: all. Default 0.9; above 0 and at most 1. */
  topP: number;
  /** 1: none; on every token of the context, as CTRL (Keskar et al. 2019) does. Default 1; above 0 and at most 3.4e+38. */
  repetitionPenalty: number;
  /** Same model, options and seed: same tokens, on every machine. Default 0; a whole number from 0 to 9007199254740991. */
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
  /** Tokens to generate at most; 0: the prompt only. Default 256; a whole number from 0 to 4294967295. */
  maxTokens: number;
  /** The model's begin token, if it has one, before a text that begins a sequence. Default true. */
  addBos: boolean;
  /** Added tokens such as <|endoftext|> in the text become their ids. Default true. */
  special: boolean;
  /** Go on after a token that ends a text. Default false. */
  ignoreEos: boolean;
  /** SHA-256 over every row of logits that is computed, in order. Default false. */
  logitsHash: boolean;
  /** Step::logits for every position, not only those a token is chosen from. Default false. */
  allLogits: boolean;
  /** With all logits: only those of the sequence's positions from this one on. Default 0; a whole number from 0 to 4294967295. */
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
  /** What the model expects before and behind a text, if it does. Default true. */
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
  /** Bytes, all told. */
  budget: number;
  /** Of the file. */
  modelBytes: number;
  /** Of all segments, decompressed. */
  weightBytes: number;
  /** Of the segments that stay. */
  pinnedBytes: number;
  /** Segments of the file. */
  segments: number;
  /** Segments that stay. */
  pinnedSegments: number;
  /** Slots that the others are streamed through; 0: nothing is streamed. */
  ringSlots: number;
  /** Of those slots. */
  ringBytes: number;
  /** Positions of context of each sequence. */
  maxSeqLen: number;
  /** The longest context that the model was made for. */
  modelSeqLen: number;
  /** Columns of a pass, at most. */
  chunk: number;
  /** Sequences that the session holds. */
  sequences: number;
  /** Tokens of the vocabulary. */
  vocabSize: number;
  /** Layers of the model. */
  layers: number;
  /** Width of the model: values of an embedding. */
  dim: number;
  /** How keys and values are kept. */
  kv: KvType;
  /** The instruction set of the kernels. */
  isa: string;
  /** Asked of the host so far. */
  bytesRead: number;
  /** Of weights that are read for each token that is generated, as planned. */
  tokenBytes: number;
  /** Tokens to expect in a second of generating, early in the context; 0: the host has not measured. */
  tokenRate: number;
  /** The budget with which everything stays, at this context. */
  residentBudget: number;
  /** Tokens to expect in a second with that budget; 0: the host has not measured. */
  residentRate: number;
  /** Experts that layers of passes took so far, each once for all columns of its pass. */
  expertsChosen: number;
  /** Of those, in memory as a whole when they were chosen. */
  expertsFound: number;
  /** Of experts, asked of the host so far. */
  expertBytes: number;
}

export const sessionStats: Columns<SessionStats> = {
  budget: 'u64',
  modelBytes: 'u64',
  weightBytes: 'u64',
  pinnedBytes: 'u64',
  segments: 'u32',
  pinnedSegments: 'u32',
  ringSlots: 'u32',
  ringBytes: 'u64',
  maxSeqLen: 'u32',
  modelSeqLen: 'u32',
  chunk: 'u32',
  sequences: 'u32',
  vocabSize: 'u32',
  layers: 'u32',
  dim: 'u32',
  kv: 'kv',
  isa: 'text',
  bytesRead: 'u64',
  tokenBytes: 'u64',
  tokenRate: 'real',
  residentBudget: 'u64',
  residentRate: 'real',
  expertsChosen: 'u64',
  expertsFound: 'u64',
  expertBytes: 'u64',
};

/** Statistics of a sequence. */
export interface SequenceStats {
  /** Tokens that were fed: in the KV cache. */
  position: number;
  /** Of the current or last generation, with what was known before and not fed. */
  promptTokens: number;
  /** Of the current or last generation. */
  generatedTokens: number;
}

export const sequenceStats: Columns<SequenceStats> = {
  position: 'u32',
  promptTokens: 'u32',
  generatedTokens: 'u32',
};

/** A request to read, in WebAssembly. */
export interface ReadRequest {
  /** Of the first byte in the file. */
  offset: number;
  /** Bytes to read. */
  size: number;
  /** What complete() and fail() name it by. */
  ticket: number;
  /** Where the bytes belong. */
  into: number;
  /** CRC-32 of the bytes, where it is known. */
  crc: number;
  /** Whether it is known. */
  hasCrc: boolean;
}

export const readRequest: Columns<ReadRequest> = {
  offset: 'u64',
  size: 'u32',
  ticket: 'u32',
  into: 'place',
  crc: 'u32',
  hasCrc: 'flag',
};

/** A segment, in WebAssembly. */
export interface Segment {
  /** Of the first byte in the file. */
  offset: number;
  /** Bytes in the file. */
  size: number;
  /** Bytes in memory. */
  rawSize: number;
  /** CRC-32 of the bytes in the file. */
  crc: number;
  /** Whether it stays in memory. */
  pinned: boolean;
}

export const segment: Columns<Segment> = {
  offset: 'u64',
  size: 'u32',
  rawSize: 'u32',
  crc: 'u32',
  pinned: 'flag',
};

/** A region of memory, in WebAssembly. */
export interface RegionBytes {
  /** What the memory is used for. */
  region: Region;
  /** How much it is. */
  bytes: number;
}

export const memoryRegion: Columns<RegionBytes> = {
  region: 'region',
  bytes: 'u64',
};

/** Calls of a kernel, in WebAssembly. */
export interface KernelCount {
  /** Such as matmul. */
  op: string;
  /** Such as 8bit; empty where there is one kernel only. */
  type: string;
  /** How often it was called. */
  calls: number;
}

export const kernelCount: Columns<KernelCount> = {
  op: 'text',
  type: 'text',
  calls: 'u64',
};
