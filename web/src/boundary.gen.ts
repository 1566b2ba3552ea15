// Made by scripts/gen-boundary.mjs from include/qsf/base/boundary.def.
export type * from './session.gen.js';

/** The least value of a number that must be above 0. */
export const ABOVE_ZERO = 2 ** -126;

/** What an option may be; flags have no limits. */
export interface OptionRule<T> {
  readonly type: 'u32' | 'u64' | 'i32' | 'real' | 'flag';
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

/** Samplers in their default order. */
export const samplerKinds = [
  'penalties', // Penalizes tokens of the context: repetition_penalty, presence_penalty and frequency_penalty.
  'dry', // Penalizes tokens that would extend a repetition: dry_multiplier.
  'top_n_sigma', // Keeps tokens near the highest logit, measured in standard deviations: top_n_sigma.
  'temperature', // Divides the logits: temperature and dynatemp_range.
  'top_k', // Keeps a number of the likeliest tokens: top_k.
  'typical_p', // Keeps a share of the tokens, those with the most typical information: typical_p.
  'top_p', // Keeps a share of the tokens, the likeliest ones: top_p.
  'min_p', // Keeps tokens of a least probability, compared with the likeliest one's: min_p.
  'xtc', // Removes the likeliest tokens at random: xtc_probability.
] as const;
export type SamplerKind = (typeof samplerKinds)[number];

/** Kinds of parts of an answer, by number. */
export const answerParts = [
  'text', // Text for the user.
  'thought', // Text that the model writes for itself before it answers.
  'call', // The name of a tool that the model calls.
  'arguments', // The arguments of that call, a JSON object.
] as const;
export type AnswerPart = (typeof answerParts)[number];

/** Types of the KV cache, finest first, by number. */
export const kvTypes = [
  'f32', // Floats as computed.
  'f16', // Rounded to binary16.
  '8bit', // A float scale and int8 codes for each head.
  '4bit', // Scale, minimum and 4-bit codes for 32 values.
  '2bit', // Scale, minimum and 2-bit codes for 32 values.
  'k8v4', // Rotated: 8-bit keys and 4-bit values; the last and first positions in binary16.
  'k4v4', // The same with 4-bit keys and values.
  'k4v3', // The same with 4-bit keys and 3-bit values.
  'k4v2', // The same with 4-bit keys and 2-bit values.
  'k3v3', // The same with 3-bit keys and values.
  'k2v2', // The same with 2-bit keys and values.
] as const;
export type KvType = (typeof kvTypes)[number];

/** Uses of memory, by number. */
export const regions = [
  'session', // The session and its sequences.
  'tables', // Header, index, tensor and segment tables, program.
  'tokenizer', // The tokenizer's section and scratch.
  'pinned', // Segments that are pinned.
  'ring', // Slots that segments are streamed through.
  'kv_cache', // Keys and values, and states, of every sequence.
  'activations', // The columns of a pass.
  'logits', // Logits and the sampler's scratch.
  'embedding_rows', // The rows of the embedding that were used last.
  'host', // Outside the arena, for the host's stack and static data.
  'free', // Not used by the plan.
  'texts', // Chat templates, conversations and grammars.
  'draft', // Outside the arena, for all of a draft model.
] as const;
export type Region = (typeof regions)[number];

/** The names to users. */
export const regionNames: Readonly<Record<Region, string>> = {
  session: 'session',
  tables: 'tables',
  tokenizer: 'tokenizer',
  pinned: 'pinned weights',
  ring: 'ring',
  kv_cache: 'kv cache',
  activations: 'activations',
  logits: 'logits',
  embedding_rows: 'embedding rows',
  host: 'host reserve',
  free: 'free',
  texts: 'texts',
  draft: 'draft model',
};

/** The types that a page rounds matrices to: those that need no search. */
export const quantTypes = [
  'f32',
  'f16',
  'bf16',
  '8bit',
  '4bit',
  '3bit',
  '2bit',
  '2bit-symmetric',
  'ternary',
  'ternary-32',
  'ternary-128',
  'ternary-256',
  'q4_0',
  'q4_1',
  'q5_0',
  'q5_1',
  'q8_0',
  'q2_k',
  'q3_k',
  'q4_k',
  'q5_k',
  'q6_k',
  'iq4_nl',
  'iq4_xs',
  'tq1_0',
  'tq2_0',
  'mxfp4',
  'q1_0',
  'q2_0',
  'q2_0-128',
  'q8_f32',
  'i2_s',
  'bitnet-32',
  'qk256',
] as const;
export type QuantType = (typeof quantTypes)[number];

/** Options of an opening. */
export interface OpenOptions {
  /** Longest context in tokens. 0: as many as fit next to all weights, at most the model's own; if weights are streamed, as many as fit in a sixteenth of the weights' bytes or of the budget, whichever is smaller, but 256 to 2,048. Default 0; a whole number from 0 to 16777216. */
  maxSeqLen: number;
  /** Sequences that the session has at once. Default 1; a whole number from 1 to 64. */
  sequences: number;
  /** Most tokens that a pass guesses ahead from earlier occurrences of the last tokens. The text stays the same; a right guess saves a pass. Takes a row of logits for each. Default 0; a whole number from 0 to 15. */
  guesses: number;
  /** With guesses: the first layers of the model and its head guess tokens, in place of earlier occurrences. Their weights are resident first. Default false. */
  guessByLayers: boolean;
  /** With guessByLayers: the number of these layers; 0: a quarter of the layers. Default 0; a whole number from 0 to 65535. */
  guessLayers: number;
  /** With guesses: the model's own layer for further tokens guesses them, in place of earlier occurrences, if its file has one. Takes memory for the layer's keys and values. Default false. */
  guessByHead: boolean;
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
  /** Reserve memory for log-probabilities: a row of logits. Default false. */
  logprobs: boolean;
  /** Rate in MB/s at which the host reads the file, as it measured; 0: not known. For estimates only. Default 0; a whole number from 0 to 4294967295. */
  readRate: number;
  /** Rate in MB/s at which the kernels multiply weights, as the host measured; 0: not known. For estimates only. Default 0; a whole number from 0 to 4294967295. */
  computeRate: number;
  /** Others, such as a server, see the reads of the file. Then no read depends on the text, except those of experts that are not resident. A pass reads the whole part of the embedding that the plan does not pin. Default false. */
  watched: boolean;
  /** Positions whose keys and values layers without a window of their own keep, the last ones; 0: all. Default 0; a whole number from 0 to 16777216. */
  kvWindow: number;
  /** With kvWindow: first positions that they keep in addition. Default 0; a whole number from 0 to 16777216. */
  kvSinks: number;
  /** With kvWindow, instead of the last positions: 1: the last half, and of earlier ones those with the largest sums of attention so far (H2O); 2: half of them whenever that many are kept, the last ones and those with the most attention of these (SnapKV). Default 0; a whole number from 0 to 2. */
  kvChosen: number;
  /** Bytes for chat templates, conversations and grammars, which may also use the free bytes of the plan; 0: if the file has a chat template, 512 KiB and 96 bytes for each token of context, for a reranker 64 KiB and 32 bytes for each, else none. Default 0; a whole number from 0 to 1073741824. */
  textBytes: number;
}

export const openOptions: OptionRules<OpenOptions> = {
  maxSeqLen: { type: 'u32', fallback: 0, least: 0, most: 16777216 },
  sequences: { type: 'u32', fallback: 1, least: 1, most: 64 },
  guesses: { type: 'u32', fallback: 0, least: 0, most: 15 },
  guessByLayers: { type: 'flag', fallback: false, least: 0, most: 1 },
  guessLayers: { type: 'u32', fallback: 0, least: 0, most: 65535 },
  guessByHead: { type: 'flag', fallback: false, least: 0, most: 1 },
  chunk: { type: 'u32', fallback: 0, least: 0, most: 4096 },
  ringSlots: { type: 'u32', fallback: 0, least: 0, most: 64 },
  streamAll: { type: 'flag', fallback: false, least: 0, most: 1 },
  recheck: { type: 'flag', fallback: false, least: 0, most: 1 },
  allLogits: { type: 'flag', fallback: false, least: 0, most: 1 },
  logprobs: { type: 'flag', fallback: false, least: 0, most: 1 },
  readRate: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
  computeRate: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
  watched: { type: 'flag', fallback: false, least: 0, most: 1 },
  kvWindow: { type: 'u32', fallback: 0, least: 0, most: 16777216 },
  kvSinks: { type: 'u32', fallback: 0, least: 0, most: 16777216 },
  kvChosen: { type: 'u32', fallback: 0, least: 0, most: 2 },
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
  /** Penalty on every token among the last repeatLastN, as in CTRL (Keskar et al. 2019); 1: none. Default 1; above 0 and at most 3.4e+38. */
  repetitionPenalty: number;
  /** The same model, options and seed give the same tokens on every machine. Default 0; a whole number from 0 to 9007199254740991. */
  seed: number;
  /** Sample among the tokens that are at least this share as likely as the likeliest one (Nguyen et al. 2024); 0: all. Default 0; 0 to 1. */
  minP: number;
  /** Sample among the tokens whose information is nearest to the expected one and whose probabilities sum to this share (Meister et al. 2022); 1: all. Default 1; above 0 and at most 1. */
  typicalP: number;
  /** Sample among the tokens whose logits are at most this many standard deviations below the highest one (Tang et al. 2024); 0 or less: all. Default -1; -1 to 3.4e+38. */
  topNSigma: number;
  /** Probability of removing all tokens of at least xtcThreshold, except the least likely of them, before a token is drawn (exclude top choices, Weidmann 2024); 0: never. Default 0; 0 to 1. */
  xtcProbability: number;
  /** Least probability of the tokens that xtcProbability removes; above 0.5: none. Default 0.1; 0 to 1. */
  xtcThreshold: number;
  /** Subtracted from the logit of every token among the last repeatLastN. Default 0; -3.4e+38 to 3.4e+38. */
  presencePenalty: number;
  /** Subtracted from the logit of a token as often as it is among the last repeatLastN. Default 0; -3.4e+38 to 3.4e+38. */
  frequencyPenalty: number;
  /** Tokens at the end of the context that the three penalties count; 0: none; -1: the whole context. Default -1; a whole number from -1 to 2147483647. */
  repeatLastN: number;
  /** Penalty on a token that would extend a repetition of dryAllowedLength tokens (don't repeat yourself, Weidmann 2024); 0: none. Default 0; 0 to 3.4e+38. */
  dryMultiplier: number;
  /** Factor of that penalty for each further token of the repetition. Default 1.75; 1 to 3.4e+38. */
  dryBase: number;
  /** Tokens of the shortest repetition with that penalty. Default 2; a whole number from 1 to 1000. */
  dryAllowedLength: number;
  /** Tokens at the end of the context in which repetitions are searched for; 0: none; -1: the whole context. Default -1; a whole number from -1 to 2147483647. */
  dryPenaltyLastN: number;
  /** The temperature follows the entropy, from this much below `temperature` to this much above it; 0: it is constant. Default 0; 0 to 3.4e+38. */
  dynatempRange: number;
  /** Exponent of the entropy, as a share of the highest possible one, in that temperature. Default 1; 0 to 3.4e+38. */
  dynatempExponent: number;
  /** Version of Mirostat (Basu et al. 2021), which replaces the samplers that remove tokens; 0: none. Default 0; a whole number from 0 to 2. */
  mirostat: number;
  /** Mirostat's target: the mean surprise of a token, in bits. Default 5; 0 to 3.4e+38. */
  mirostatTau: number;
  /** Mirostat's learning rate. Default 0.1; 0 to 3.4e+38. */
  mirostatEta: number;
}

export const samplerOptions: OptionRules<SamplerOptions> = {
  temperature: { type: 'real', fallback: 0.7, least: 0, most: 3.4e38 },
  topK: { type: 'u32', fallback: 40, least: 0, most: 4294967295 },
  topP: { type: 'real', fallback: 0.9, least: ABOVE_ZERO, most: 1 },
  repetitionPenalty: { type: 'real', fallback: 1, least: ABOVE_ZERO, most: 3.4e38 },
  seed: { type: 'u64', fallback: 0, least: 0, most: 9007199254740991 },
  minP: { type: 'real', fallback: 0, least: 0, most: 1 },
  typicalP: { type: 'real', fallback: 1, least: ABOVE_ZERO, most: 1 },
  topNSigma: { type: 'real', fallback: -1, least: -1, most: 3.4e38 },
  xtcProbability: { type: 'real', fallback: 0, least: 0, most: 1 },
  xtcThreshold: { type: 'real', fallback: 0.1, least: 0, most: 1 },
  presencePenalty: { type: 'real', fallback: 0, least: -3.4e38, most: 3.4e38 },
  frequencyPenalty: { type: 'real', fallback: 0, least: -3.4e38, most: 3.4e38 },
  repeatLastN: { type: 'i32', fallback: -1, least: -1, most: 2147483647 },
  dryMultiplier: { type: 'real', fallback: 0, least: 0, most: 3.4e38 },
  dryBase: { type: 'real', fallback: 1.75, least: 1, most: 3.4e38 },
  dryAllowedLength: { type: 'u32', fallback: 2, least: 1, most: 1000 },
  dryPenaltyLastN: { type: 'i32', fallback: -1, least: -1, most: 2147483647 },
  dynatempRange: { type: 'real', fallback: 0, least: 0, most: 3.4e38 },
  dynatempExponent: { type: 'real', fallback: 1, least: 0, most: 3.4e38 },
  mirostat: { type: 'u32', fallback: 0, least: 0, most: 2 },
  mirostatTau: { type: 'real', fallback: 5, least: 0, most: 3.4e38 },
  mirostatEta: { type: 'real', fallback: 0.1, least: 0, most: 3.4e38 },
};

/** Options of a prompt. */
export interface PromptOptions {
  /** Most tokens to generate; 0: only the prompt is computed. Default 256; a whole number from 0 to 4294967295. */
  maxTokens: number;
  /** Add the model's begin token, if it has one, before a text that begins a sequence, unless the text begins with it, and after a text the end token that some models expect there, unless the text ends with it. Default true. */
  addBos: boolean;
  /** Added tokens such as <|endoftext|> in the text become their ids. Default true. */
  special: boolean;
  /** Continue after a token that ends a text. Default false. */
  ignoreEos: boolean;
  /** Compute the SHA-256 of every row of logits, in order. Default false. */
  logitsHash: boolean;
  /** Compute the log-probability of each generated token, by the model's logits before biases and samplers. Default false. */
  logprobs: boolean;
  /** With them: also those of as many of the likeliest tokens. Default 0; a whole number from 0 to 20. */
  topLogprobs: number;
  /** Return Step::logits for every position, not only for those that a token is sampled from. Default false. */
  allLogits: boolean;
  /** With all logits: the first position of the sequence whose logits are returned. Default 0; a whole number from 0 to 4294967295. */
  logitsFrom: number;
  /** The prompt begins the sequence anew. Tokens at its beginning that this or another sequence has computed are not computed again, except those whose logits are returned. Default false. */
  anew: boolean;
}

export const promptOptions: OptionRules<PromptOptions> = {
  maxTokens: { type: 'u32', fallback: 256, least: 0, most: 4294967295 },
  addBos: { type: 'flag', fallback: true, least: 0, most: 1 },
  special: { type: 'flag', fallback: true, least: 0, most: 1 },
  ignoreEos: { type: 'flag', fallback: false, least: 0, most: 1 },
  logitsHash: { type: 'flag', fallback: false, least: 0, most: 1 },
  logprobs: { type: 'flag', fallback: false, least: 0, most: 1 },
  topLogprobs: { type: 'u32', fallback: 0, least: 0, most: 20 },
  allLogits: { type: 'flag', fallback: false, least: 0, most: 1 },
  logitsFrom: { type: 'u32', fallback: 0, least: 0, most: 4294967295 },
  anew: { type: 'flag', fallback: false, least: 0, most: 1 },
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
