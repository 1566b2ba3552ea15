// The engine in this worker: its names and errors, and text as bytes.
import { ends, kvTypes, poolings, regionNames, steps } from './boundary.gen.js';
import type {
  End,
  KernelCount,
  KvType,
  OpenOptions,
  ReadRequest,
  Segment,
  SequenceStats,
  SessionStats,
  Step,
} from './boundary.gen.js';
import { MiB, PAGE } from './constants.js';
import type { EmbedRequest, GenerateRequest, WasmSource } from './contract.js';
import { EngineInstance } from './engine-instance.js';
import type { Instance } from './engine-instance.js';
import type { EngineModule } from './engine-module.js';
import { QSFError, errorName } from './errors.js';
import type { ErrorName } from './errors.js';
import { errorNumbers } from './errors.gen.js';
import type { MemoryRegion, Variant } from './types.js';

/** engine.h's kHostReserve and one page: with less there is no arena at all. */
const SMALLEST = MiB + PAGE;

/** Starts the WebAssembly module of a variant in a memory, by which it is the one for shared memory or the other. */
export type ModuleStarter = (
  source: WasmSource,
  variant: Variant,
  threads: number,
  memory: WebAssembly.Memory,
) => Promise<EngineModule>;

export interface EngineOptions {
  variant: Variant;
  threads: number;
  /** Whether other threads see the memory, as several that compute must. */
  shared: boolean;
  /** Whether tokens are made by as many of the threads as are fastest at the moment. */
  tuned: boolean;
  budget: number;
  wasm: WasmSource;
}

export class Engine {
  readonly variant: Variant;
  readonly threads: number;
  readonly #instance: Instance;
  readonly #memory: WebAssembly.Memory;
  /** Never detached: the memory's size never changes. */
  readonly #bytes: Uint8Array;
  readonly #encoder = new TextEncoder();

  constructor(variant: Variant, threads: number, instance: Instance, memory: WebAssembly.Memory) {
    this.variant = variant;
    this.threads = threads;
    this.#instance = instance;
    this.#memory = memory;
    this.#bytes = new Uint8Array(memory.buffer);
  }

  /** Instantiates the module in a memory of exactly `budget` bytes, a multiple of 64 KiB. */
  static async create(options: EngineOptions, start: ModuleStarter): Promise<Engine> {
    const { variant, threads, tuned, shared, budget, wasm } = options;
    if (budget < SMALLEST) {
      throw new QSFError(
        'budget_too_small',
        `any model needs at least ${(SMALLEST / MiB).toFixed(2)} MiB, and the budget is ${(budget / MiB).toFixed(2)} MiB`,
      );
    }
    const pages = budget / PAGE;
    let wasmMemory: WebAssembly.Memory;
    try {
      wasmMemory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
    } catch (cause) {
      throw new QSFError('out_of_memory', `The browser refused ${budget} bytes of WebAssembly memory.`, { cause });
    }
    try {
      const module = await start(wasm, variant, threads, wasmMemory);
      return new Engine(variant, threads, new EngineInstance(module, wasmMemory, threads, tuned), wasmMemory);
    } catch (cause) {
      if (cause instanceof QSFError) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new QSFError('unsupported_host', `The WebAssembly module did not load: ${why}`, { cause });
    }
  }

  get memoryBytes(): number {
    return this.#memory.buffer.byteLength;
  }

  /** Begins a session, forgetting an earlier one. No read of the earlier one may be under way. */
  open(options: OpenOptions & { fileSize: number; kv: KvType | undefined }): void {
    const kv = options.kv === undefined ? -1 : kvTypes.indexOf(options.kv);
    this.#check(this.#instance.open({ ...options, kv, budget: this.memoryBytes }));
  }

  step(): Step {
    return steps[this.#instance.step()] ?? 'error';
  }

  /** What step() ended with, after 'error'. */
  error(): QSFError {
    return this.#error(this.#instance.errorCode());
  }

  nextRequest(): ReadRequest | undefined {
    return this.#instance.nextRequest();
  }

  /** The place in memory that a request's bytes belong in. */
  target({ into, size }: ReadRequest): Uint8Array {
    return this.#bytes.subarray(into, into + size);
  }

  /** The CRC-32 of the bytes that lie there now. */
  crc32({ into, size }: ReadRequest): number {
    return this.#instance.crc32(into, size);
  }

  complete(ticket: number): void {
    this.#check(this.#instance.complete(ticket));
  }

  fail(ticket: number, error: { code: ErrorName; sentence: string }): void {
    const sentence = this.#encoder.encode(error.sentence);
    this.#stage([sentence]);
    this.#instance.fail(ticket, errorNumbers[error.code], sentence.length);
  }

  /** Begins a generation that continues the sequence, or with `continue` unset begins it anew. */
  start(request: GenerateRequest, sequence = 0): void {
    const { prompt, stop, continue: goesOn, ...options } = request;
    if (!goesOn) this.#check(this.#instance.rewind(0, sequence));
    if (stop.some((text) => text.includes('\0'))) {
      throw new QSFError('bad_argument', 'A stop string holds a zero character.');
    }
    const [body, staged] = this.#body(prompt);
    const stops = this.#encoder.encode(stop.map((text) => `${text}\0`).join(''));
    this.#stage([body, stops]);
    this.#check(this.#instance.start({ ...options, ...staged, stopsSize: stops.length }, sequence));
  }

  /** Begins the embedding of one text, with which the sequence begins anew. */
  embed(
    text: string | Uint32Array,
    { pooling, normalize, ...options }: Omit<EmbedRequest, 'texts'>,
    sequence = 0,
  ): void {
    const [body, staged] = this.#body(text);
    this.#stage([body]);
    this.#check(
      this.#instance.embed(
        {
          ...options,
          ...staged,
          pooling: pooling === undefined ? -1 : poolings.indexOf(pooling),
          normalize: normalize === undefined ? -1 : Number(normalize),
        },
        sequence,
      ),
    );
  }

  /** After 'embedding': a copy of the values. */
  embedding(): Float32Array {
    return this.#instance.embedding();
  }

  stop(sequence = 0): void {
    this.#instance.stop(sequence);
  }

  /** Ends the threads beside this one. */
  close(): void {
    this.#instance.close();
  }

  preload(): void {
    this.#check(this.#instance.preload());
  }

  token(): number {
    return this.#instance.token();
  }

  /** After 'token' or 'done': text that may be shown now. */
  piece(): string {
    return new TextDecoder().decode(this.#instance.piece());
  }

  /** Why the sequence's generation ended. */
  end(sequence = 0): End {
    return ends[this.#instance.end(sequence)] ?? 'error';
  }

  tokenize(text: string, special: boolean): Uint32Array {
    const body = this.#encoder.encode(text);
    // A token stands for a byte or more, but a normalizer may put a character in front; ids are aligned.
    this.#stage([body], 4 * (body.length + 8) + 3);
    const ids = this.#instance.tokenize(body.length, special);
    if (typeof ids === 'number') throw this.#error(ids);
    return ids;
  }

  detokenize(tokens: Uint32Array): string {
    const { vocabSize } = this.#instance.stats();
    const decoder = new TextDecoder();
    let text = '';
    for (const token of tokens) {
      if (token >= vocabSize)
        throw new QSFError('bad_token', `Token ${token} is not in the vocabulary of ${vocabSize}.`);
      text += decoder.decode(this.#instance.detokenize(token), { stream: true });
    }
    return text + decoder.decode();
  }

  stats(): SessionStats {
    return this.#instance.stats();
  }
  sequenceStats(sequence = 0): SequenceStats {
    return this.#instance.sequenceStats(sequence);
  }
  memoryMap(): MemoryRegion[] {
    return this.#instance.memoryMap().map(({ region, bytes }) => ({ region, name: regionNames[region], bytes }));
  }
  kernelCounts(): KernelCount[] {
    return this.#instance.kernelCounts();
  }
  segments(): Segment[] {
    return this.#instance.segments();
  }
  modelHash(): string {
    return this.#instance.modelHash();
  }
  logitsHash(sequence = 0): string {
    return this.#instance.logitsHash(sequence);
  }

  /** A text's bytes, or those of ids in place of it. */
  #body(text: string | Uint32Array): [Uint8Array, { textSize: number; nTokens: number }] {
    if (typeof text !== 'string')
      return [new Uint8Array(text.buffer, text.byteOffset, text.byteLength), { textSize: 0, nTokens: text.length }];
    const body = this.#encoder.encode(text);
    return [body, { textSize: body.length, nTokens: 0 }];
  }

  #stage(parts: readonly Uint8Array[], room = 0): void {
    if (this.#instance.stage(parts, room)) return;
    const size = parts.reduce((sum, { length }) => sum + length, room);
    throw new QSFError('bad_argument', `${size} bytes of text are more than one call takes.`);
  }

  #error(code: number): QSFError {
    return new QSFError(errorName(code), this.#instance.sentence());
  }

  #check(code: number): void {
    if (code !== 0) throw this.#error(code);
  }
}
