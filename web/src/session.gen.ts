// Made by scripts/gen-boundary.mjs from include/qsf/base/boundary.def.
import type {
  AnswerPart,
  EmbeddingOptions,
  End,
  GrammarKind,
  KvType,
  OpenOptions,
  Pooling,
  PromptOptions,
  Region,
  SamplerOptions,
  Step,
} from './boundary.gen.js';

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
  /** Segments of the file that passes use. */
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
  /** Most tokens that a pass guesses ahead; 0 if attention chooses positions. */
  guesses: number;
  /** Positions that layers without a window of their own keep; 0: all. */
  kvWindow: number;
  /** First positions that they keep in addition. */
  kvSinks: number;
  /** The way in which attention chooses them, as the option. */
  kvChosen: number;
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
  /** Tokens of that prompt that were computed before and not computed again. */
  reusedTokens: number;
  /** Tokens that the current or last generation has guessed. */
  guessedTokens: number;
  /** Guessed tokens that the text has. */
  rightTokens: number;
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

/** The log-probability of a token, in WebAssembly. */
export interface TokenLogprob {
  /** The token's id. */
  token: number;
  /** The natural logarithm of its probability; -Infinity if the model excludes it. */
  logprob: number;
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

/** A part of an answer, in WebAssembly. */
export interface AnswerPiece {
  /** The kind of the part. */
  kind: AnswerPart;
  /** Its text, of which more may follow, or the name or the arguments of a call. */
  text: string;
}

/** A saved sequence, in WebAssembly. */
export interface SavedHeader {
  /** Tokens of the saved sequence. */
  tokens: number;
  /** Bytes of the host's note, which follow the header. */
  noteBytes: number;
  /** CRC-32 of the note. */
  noteCrc: number;
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
  /** Begins a session with a file of that size and forgets an earlier session. The arena stays the same block. If the host makes the file's bytes itself, it is vouched, and checksums of segments are not compared. Without kv, the plan selects the type. */
  open(
    budget: number,
    size: number,
    vouched: boolean,
    kv: KvType | undefined,
    options: OpenOptions,
  ): Failure | undefined;
  /** Ends the threads, because a browser waits for them before it ends their workers. */
  close(): void;
  /** Makes another session of the module the draft of this one, which must not be open. The draft uses the threads of this one, and must outlive it. */
  useDraft(draft: Session): void;
  /** Begins this session as a draft, in a part of the budget of both models, before the other one opens with these options. Plans in the whole budget come first: returns whether this opening is the last one. If it is not, the call follows again once step() has returned ready. */
  openDraft(budget: number, size: number, vouched: boolean, again: boolean, options: OpenOptions): boolean | Failure;
  /** Checks that the draft, which is open, can guess for this session, which is open too. */
  checkDraft(): Failure | undefined;
  /** Returns sentence i about a draft that will not be fast, without an error's number. After the last, the sentence is empty. */
  draftNote(i: number): Failure;
  /** Begins to guess for a sequence that wants guesses. Returns whether there is one. Then the draft has to be stepped, and takeGuess() be called after each of its results. To be called before each step. */
  beginGuess(): boolean | Failure;
  /** Takes the result of the draft's last step. Returns whether the guesses are complete. */
  takeGuess(): boolean;
  /** Steps for about a millisecond, or until a request or a result for the host. */
  step(): Step;
  /** Returns the next request to read, or undefined. */
  nextRequest(): ReadRequest | undefined;
  /** Returns the CRC-32 of bytes in the arena, several times as fast as JavaScript. */
  crc32(at: number, size: number): number;
  /** Adds the staged bytes to the digest of a file. */
  addToDigest(size: number): void;
  /** Returns the SHA-256 of the bytes that were added, in hexadecimal, and begins the next digest. The text is valid until then. */
  digest(): string;
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
  /** Clears the sequence and begins the score of a document for a query, whose texts are staged. The one value of the embedding is the score. */
  rerank(sequence: number, query: number, document: number): Failure | undefined;
  /** Returns the number of generations that can be held at once with grammars or held calls, or else those with budgets of thoughts only; 1 if the memory for texts has no room. They share that memory, which is divided when such a generation is first needed. */
  guides(grammars: boolean): number;
  /** Makes the grammar of the next generation, whose text is staged. It may take the place of the last conversation. As many generations at once as guides() returns are held by guide() or hold(): others are refused with bad_state. */
  guide(kind: GrammarKind | undefined, size: number): Failure | undefined;
  /** Holds the next answer, after guide(): its thoughts end after that many tokens, 4294967295 for never. With calls, those of the conversation that follows are held to the schemas of their tools, and an answer that is required to have one begins with it. Staged is the name of the one tool that may be called, or of 0 bytes. */
  hold(thought: number, calls: boolean, required: boolean, name: number): Failure | undefined;
  /** Stops a generation of the sequence and sets the lists of sampling of those that follow. Staged are as many biases, each an id and a float of 32 bits, and then the names of the samplers in their order and the texts that end repetitions, each with a zero byte at its end. Without a size, the default. */
  sampling(
    sequence: number,
    biases: number,
    samplers: number | undefined,
    breakers: number | undefined,
  ): Failure | undefined;
  /** Renders a conversation and computes its token ids. Staged are a template of that many bytes, or of 0 for the file's own, and two JSON objects with its variables; the second may have 0 bytes. With a sequence, answer() can follow for it, and an answer under way in that sequence ends. */
  converse(
    sequence: number | undefined,
    chat_template: number,
    values: number,
    more: number,
    now: LocalTime,
  ): Failure | undefined;
  /** Returns the text of the last conversation. */
  conversation(): Uint8Array;
  /** Begins a generation that answers the last conversation and ends as its template says. The sequence keeps the tokens that begin the conversation. The stop strings are staged as for start(). The answer has calls if the conversation has tools. */
  answer(sequence: number, stops: number, sampler: SamplerOptions, options: PromptOptions): Failure | undefined;
  /** Returns the parts of an answer that the last step completed, after each of its steps token and done. */
  parts(): AnswerPiece[];
  /** Stops a generation or an embedding. */
  stop(sequence: number): void;
  /** Forgets all tokens of the sequence except the first n. */
  rewind(n: number, sequence: number): Failure | undefined;
  /** Begins to save the sequence, and returns the header of its file. Size and CRC-32 are those of a note, which the host writes after the header. */
  beginSave(sequence: number, size: number, crc: number): Uint8Array | Failure;
  /** Returns the next bytes of the file, as many as are staged, fewer at the end and then none. They are in the staged memory. */
  save(): Uint8Array | Failure;
  /** Begins to replace the sequence by a saved one, the header of whose file of that many bytes is staged. */
  beginRestore(sequence: number, size: number): SavedHeader | Failure;
  /** Takes the next staged bytes of the file after the note, which come twice. Returns whether the sequence is restored. */
  restore(size: number): boolean | Failure;
  /** Requests every pinned segment; step() returns ready when they are resident. Ends all generations. */
  preload(): Failure | undefined;
  /** Returns the reason after the step error. */
  error(): Failure;
  /** Returns the sequence that the last step belongs to. */
  sequence(): number;
  /** Returns the id of the token, after the step token. */
  token(): number;
  /** Returns the log-probabilities of the token and of the likeliest ones, after the step token, if they were asked for. */
  logprobs(): TokenLogprob[];
  /** Returns the text that may be shown now, after the steps token and done. */
  piece(): string;
  /** Returns the values of the embedding, after the step embedding. */
  embedding(): Float32Array;
  /** Returns the reason why the sequence's generation ended. */
  end(sequence: number): End;
  /** Returns the token ids of the staged text. The staged memory must have room for them after the text. */
  tokenize(size: number, special: boolean): Uint32Array | Failure;
  /** Returns the bytes of a token, which may be a part of a character. A control token has some only with special. */
  detokenize(token: number, special: boolean): Uint8Array;
  /** Returns the id of the token that the model expects before a text. */
  beginToken(): number | undefined;
  /** Returns the ids of the tokens that end a text. */
  endTokens(): Uint32Array;
  /** Returns a text of the file's metadata by its staged key, or an empty text. */
  metadata(size: number): string;
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
