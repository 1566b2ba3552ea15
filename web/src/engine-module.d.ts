// The shape of the WebAssembly module that wasm/bindings.cpp makes. Numbers with "code" are error numbers, 0 for none.

export interface ReadRequest {
  offset: number;
  /** 0: nothing is asked for. */
  size: number;
  ticket: number;
  into: number;
  crc: number;
  hasCrc: boolean;
}

export interface Segment {
  offset: number;
  /** Bytes in the file, and in memory. */
  size: number;
  rawSize: number;
  crc: number;
  pinned: boolean;
}

interface Text {
  at: number;
  size: number;
}

export interface EngineModule {
  open(options: {
    budget: number;
    fileSize: number;
    maxSeqLen: number;
    kv: number;
    streamAll: boolean;
    threads: number;
  }): number;
  /** A position in STEPS of engine.ts. */
  step(): number;
  nextRequest(): ReadRequest;
  complete(ticket: number): number;
  fail(ticket: number, code: number, stagedSize: number): void;
  stage(size: number): number;
  start(options: {
    at: number;
    textSize: number;
    nTokens: number;
    stops: number;
    nStops: number;
    maxTokens: number;
    temperature: number;
    topK: number;
    topP: number;
    repetitionPenalty: number;
    seed: number;
    addBos: boolean;
    special: boolean;
    ignoreEos: boolean;
    logitsHash: boolean;
  }): number;
  stop(): void;
  /** Ends the threads beside the caller's. */
  close(): void;
  rewind(n: number): number;
  preload(): number;
  token(): number;
  piece(): Text;
  stoppedByEos(): boolean;
  /** Of the last failure. */
  errorCode(): number;
  sentence(): string;
  modelHash(): string;
  logitsHash(): string;
  tokenize(text: Text, special: boolean, out: number, max: number): number;
  detokenize(token: number): Text;
  stats(): {
    budget: number;
    modelBytes: number;
    weightBytes: number;
    segments: number;
    pinnedSegments: number;
    ringSlots: number;
    maxSeqLen: number;
    chunk: number;
    vocabSize: number;
    layers: number;
    kv: 'f32' | 'f16' | '8bit' | '4bit' | '2bit';
    isa: string;
    bytesRead: number;
    promptTokens: number;
    position: number;
  };
  memoryMap(): { name: string; bytes: number }[];
  kernelCounts(): { op: string; type: string; calls: number }[];
  segments(): Segment[];
}

/** `threads`: how many a module with shared memory makes room for, the caller's among them. */
declare const create: (options: { wasmMemory: WebAssembly.Memory; threads: number }) => Promise<EngineModule>;
export default create;
