// One of the module's instances: what crosses, as numbers, rows of them in its mailbox, and places in memory.
import {
  embeddingOptions,
  kernelCount,
  kvTypes,
  memoryRegion,
  openOptions,
  promptOptions,
  readRequest,
  regions,
  samplerOptions,
  segment,
  sequenceStats,
  sessionStats,
} from './boundary.gen.js';
import type {
  Columns,
  EmbeddingOptions,
  KernelCount,
  OpenOptions,
  PromptOptions,
  ReadRequest,
  RegionBytes,
  SamplerOptions,
  Segment,
  SequenceStats,
  SessionStats,
} from './boundary.gen.js';
import type { EngineModule } from './engine-module.js';

/** What a fake of it has. */
export type Instance = Pick<EngineInstance, keyof EngineInstance>;

/** How much of what was staged is a text, or ids in place of one. */
interface Staged {
  textSize: number;
  nTokens: number;
}

/**
 * One session in an arena of its own; a module holds as many as its memory has room for. Numbers that are returned are error
 * numbers, 0 for none, or places in boundary.gen.ts's lists.
 */
export class EngineInstance {
  readonly #module: EngineModule;
  readonly #memory: WebAssembly.Memory;
  /** 0 once it is deleted. */
  #at: number;
  /** Never detached, as the memory's size never changes. */
  readonly #mailbox: Float64Array;

  /** `threads` are its own, the caller's among them; `tuned`, tokens are made by as many as are fastest at the moment. */
  constructor(module: EngineModule, memory: WebAssembly.Memory, threads: number, tuned = false) {
    this.#module = module;
    this.#memory = memory;
    this.#at = module._instance_new(threads, Number(tuned));
    this.#mailbox = new Float64Array(memory.buffer, module._instance_mailbox(this.#at) >>> 0);
  }

  /** `kv` is -1 for the plan's choice. */
  open(options: OpenOptions & { budget: number; fileSize: number; kv: number }): number {
    this.#put(options, openOptions);
    return this.#module._instance_open(this.#at, options.budget, options.fileSize, options.kv);
  }

  step(): number {
    return this.#module._instance_step(this.#at);
  }

  nextRequest(): ReadRequest | undefined {
    return this.#module._instance_next_request(this.#at) ? this.#take(readRequest) : undefined;
  }

  /** Of bytes in the arena. */
  crc32(at: number, size: number): number {
    return this.#module._instance_crc32(this.#at, at, size) >>> 0;
  }

  complete(ticket: number): number {
    return this.#module._instance_complete(this.#at, ticket);
  }

  /** The sentence is staged. */
  fail(ticket: number, code: number, size: number): void {
    this.#module._instance_fail(this.#at, ticket, code, size);
  }

  /** Puts parts one behind the other where the next call reads them, with room for more bytes; false where there is none. */
  stage(parts: readonly Uint8Array[], room = 0): boolean {
    const size = parts.reduce((sum, { length }) => sum + length, room);
    let at = this.#module._instance_stage(this.#at, Math.max(size, 1)) >>> 0;
    if (at === 0) return false;
    for (const part of parts) {
      new Uint8Array(this.#memory.buffer, at, part.length).set(part);
      at += part.length;
    }
    return true;
  }

  /** Stop strings, each ended by a zero byte, are staged behind the text. */
  start(options: SamplerOptions & PromptOptions & Staged & { stopsSize: number }, sequence: number): number {
    const { textSize, nTokens, stopsSize } = options;
    this.#put(options, samplerOptions, promptOptions);
    return this.#module._instance_start(this.#at, sequence, textSize, nTokens, stopsSize);
  }

  /** `pooling` and `normalize` are -1 where the model decides. */
  embed(options: EmbeddingOptions & Staged & { pooling: number; normalize: number }, sequence: number): number {
    const { textSize, nTokens, pooling, normalize } = options;
    this.#put(options, embeddingOptions);
    return this.#module._instance_embed(this.#at, sequence, textSize, nTokens, pooling, normalize);
  }

  /** After a step that was 'embedding': a copy of its values. */
  embedding(): Float32Array {
    this.#module._instance_embedding(this.#at);
    return new Float32Array(this.#bytes().buffer);
  }

  stop(sequence: number): void {
    this.#module._instance_stop(this.#at, sequence);
  }

  /** Ends the threads beside the caller's. */
  close(): void {
    this.#module._instance_close(this.#at);
  }

  rewind(n: number, sequence: number): number {
    return this.#module._instance_rewind(this.#at, n, sequence);
  }

  preload(): number {
    return this.#module._instance_preload(this.#at);
  }

  sequence(): number {
    return this.#module._instance_sequence(this.#at);
  }

  token(): number {
    return this.#module._instance_token(this.#at) >>> 0;
  }

  /** A copy of its bytes. */
  piece(): Uint8Array {
    this.#module._instance_piece(this.#at);
    return this.#bytes();
  }

  end(sequence: number): number {
    return this.#module._instance_end(this.#at, sequence);
  }

  /** Of the last failure. */
  errorCode(): number {
    return this.#module._instance_error_code(this.#at);
  }

  sentence(): string {
    this.#module._instance_sentence(this.#at);
    return this.#text();
  }

  modelHash(): string {
    this.#module._instance_model_hash(this.#at);
    return this.#text();
  }

  logitsHash(sequence: number): string {
    this.#module._instance_logits_hash(this.#at, sequence);
    return this.#text();
  }

  /** Of a text that is staged with room for its ids: these, or an error number. */
  tokenize(textSize: number, special: boolean): Uint32Array | number {
    const count = this.#module._instance_tokenize(this.#at, textSize, Number(special));
    return count < 0 ? -count : new Uint32Array(this.#memory.buffer, this.#mailbox[0], count).slice();
  }

  /** A copy of its bytes. */
  detokenize(token: number): Uint8Array {
    this.#module._instance_detokenize(this.#at, token);
    return this.#bytes();
  }

  stats(): SessionStats {
    this.#module._instance_stats(this.#at);
    return this.#take(sessionStats);
  }

  sequenceStats(sequence: number): SequenceStats {
    this.#module._instance_sequence_stats(this.#at, sequence);
    return this.#take(sequenceStats);
  }

  memoryMap(): RegionBytes[] {
    return this.#all((index) => this.#module._instance_memory_region(this.#at, index), memoryRegion);
  }

  kernelCounts(): KernelCount[] {
    return this.#all((index) => this.#module._instance_kernel_count(this.#at, index), kernelCount);
  }

  /** The segment table, with what the plan makes of it. */
  segments(): Segment[] {
    return this.#all((index) => this.#module._instance_segment(this.#at, index), segment);
  }

  /** Ends the threads and gives the arena back. */
  delete(): void {
    this.#module._instance_delete(this.#at);
    this.#at = 0;
  }

  /** Makes a row of the options that the lists name. */
  #put<T extends object>(options: T, ...lists: Partial<Record<keyof T, unknown>>[]): void {
    const names = lists.flatMap((list) => Object.keys(list)) as (keyof T)[];
    names.forEach((name, i) => (this.#mailbox[i] = Number(options[name])));
  }

  /** What a row tells. */
  #take<T>(columns: Columns<T>): T {
    const row: Record<string, unknown> = {};
    let i = 0;
    for (const name in columns) {
      const column = columns[name];
      const number = this.#mailbox[i++]!;
      if (column === 'text') row[name] = this.#text(number, this.#mailbox[i++]);
      else if (column === 'flag') row[name] = number !== 0;
      else if (column === 'kv') row[name] = kvTypes[number];
      else if (column === 'region') row[name] = regions[number];
      else row[name] = number;
    }
    return row as T;
  }

  /** The rows of a list, as long as `give` gives one. */
  #all<T>(give: (index: number) => number, columns: Columns<T>): T[] {
    const rows: T[] = [];
    while (give(rows.length)) rows.push(this.#take(columns));
    return rows;
  }

  /** A copy of the bytes that a call gave. */
  #bytes(at = this.#mailbox[0]!, size = this.#mailbox[1]!): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer, at, size).slice();
  }

  /** Text in shared memory cannot be decoded. */
  #text(at?: number, size?: number): string {
    return new TextDecoder().decode(this.#bytes(at, size));
  }
}
