// The shape of the WebAssembly module that wasm/bindings.cpp makes. Numbers with "code" are error numbers, 0 for none;
// other numbers without a meaning of their own are places in boundary.gen.ts's lists.
import type {
  EmbeddingOptions,
  OpenOptions,
  PromptOptions,
  SamplerOptions,
  SequenceStats,
  SessionStats,
} from './boundary.gen.js';

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

export interface KernelCount {
  op: string;
  type: string;
  calls: number;
}

interface Text {
  at: number;
  size: number;
}

/** One session in an arena of its own; a module holds as many as its memory has room for. */
export interface EngineInstance {
  open(options: OpenOptions & { budget: number; fileSize: number; kv: number }): number;
  step(): number;
  nextRequest(): ReadRequest;
  crc32(at: number, size: number): number;
  complete(ticket: number): number;
  fail(ticket: number, code: number, stagedSize: number): void;
  stage(size: number): number;
  start(
    options: SamplerOptions &
      PromptOptions & { at: number; textSize: number; nTokens: number; stops: number; nStops: number },
    sequence: number,
  ): number;
  /** `pooling` and `normalize` are -1 where the model decides. */
  embed(
    options: EmbeddingOptions & { at: number; textSize: number; nTokens: number; pooling: number; normalize: number },
    sequence: number,
  ): number;
  /** After a step that was 'embedding': floats, `size` their bytes. */
  embedding(): Text;
  stop(sequence: number): void;
  /** Ends the threads beside the caller's. */
  close(): void;
  rewind(n: number, sequence: number): number;
  preload(): number;
  sequence(): number;
  token(): number;
  piece(): Text;
  end(sequence: number): number;
  /** Of the last failure. */
  errorCode(): number;
  sentence(): string;
  modelHash(): string;
  logitsHash(sequence: number): string;
  tokenize(text: Text, special: boolean, out: number, max: number): number;
  detokenize(token: number): Text;
  stats(): SessionStats;
  sequenceStats(sequence: number): SequenceStats;
  memoryMap(): { region: number; bytes: number }[];
  kernelCounts(): KernelCount[];
  segments(): Segment[];
  /** Ends the threads and gives the arena back. */
  delete(): void;
}

export interface EngineModule {
  /** `threads` are the instance's own, the caller's among them. */
  Instance: new (threads: number) => EngineInstance;
}

/** With shared memory, the module starts workers for all but one of `threads`. */
declare const create: (options: {
  wasmMemory: WebAssembly.Memory;
  threads: number;
  wasmBinary?: Uint8Array;
  /** In place of what would find and compile it. */
  instantiateWasm?: (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ) => object;
  /** The script of these workers, and of which kind it is. */
  mainScriptUrlOrBlob?: string;
  workerType?: 'module' | 'classic';
}) => Promise<EngineModule>;
export default create;
