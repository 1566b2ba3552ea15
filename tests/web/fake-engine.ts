// An engine and a source that do as a test says: a session's phases over real memory, without a model.
import { ends, steps } from '../../web/src/boundary.gen.js';
import type {
  End,
  ReadRequest,
  Region,
  RegionBytes,
  Segment,
  SequenceStats,
  SessionStats,
  Step,
} from '../../web/src/boundary.gen.js';
import { Engine } from '../../web/src/engine.js';
import type { Instance } from '../../web/src/engine-instance.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import type { ErrorName } from '../../web/src/errors.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from '../../web/src/sources/source.js';

/** Where the fake puts what it reads, and how much may be staged. */
const ARENA = 65_536;
const STAGED = 32_768;
const HEADER = 128;

/** The byte of every file at an offset. */
export const byteAt = (offset: number) => (offset * 31 + 7) & 0xff;

interface Failure {
  code: ErrorName;
  sentence: string;
}

/** What the n-th token of a generation comes with. */
export interface Script {
  piece?: (n: number) => string;
  /** Steps of mere work before each token. */
  work?: number;
  /** A segment is read before these tokens. */
  reads?: (n: number) => boolean;
  /** The generation ends so after so many tokens, unless `maxTokens` comes first. */
  end?: { after: number; why: End };
  /** The engine fails before this token. */
  fails?: { before: number; error: Failure };
}

export class FakeInstance implements Instance {
  readonly memory = new WebAssembly.Memory({ initial: 4, maximum: 4 });
  readonly #bytes = new Uint8Array(this.memory.buffer);
  script: Script = {};
  /** open(), start() and complete() refuse with these, as long as they are set. */
  refuse: {
    open?: Failure;
    start?: Failure;
    embed?: Failure;
    complete?: Failure | ((ticket: number) => Failure | undefined);
  } = {};
  table: Segment[] = [0, 1, 2].map((i) => ({
    ...{ offset: HEADER + i * 1000, size: 1000, rawSize: 1200, crc: i, pinned: i < 2 },
  }));
  map: [Region, number][] = [];
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  /** Of the last start(). */
  options: Parameters<Instance['start']>[0] | undefined;
  text = '';
  ids: number[] = [];
  stops: string[] = [];
  stepped = 0;
  /** Of each embed(): its options, and its text or ids. */
  readonly embeds: { options: Parameters<Instance['embed']>[0]; text: string; ids: number[] }[] = [];
  #phase: 'opening' | 'ready' | 'preloading' | 'generating' | 'embedding' | 'failed' = 'ready';
  #queue: ReadRequest[] = [];
  #missing = new Set<number>();
  #tickets = 0;
  #made = 0;
  #worked = 0;
  #asked = -1;
  #end: End = 'none';
  #failure: Failure | undefined;
  #told: Failure | undefined;
  #staged = new Uint8Array();

  /** Reads that were asked for and not completed yet. */
  get missing(): number {
    return this.#missing.size;
  }

  open(options: Parameters<Instance['open']>[0]): number {
    this.calls.push(`open ${String(options.fileSize)}`);
    if (this.refuse.open) return this.#code(this.refuse.open);
    this.#phase = 'opening';
    this.#failure = undefined;
    this.#missing.clear();
    this.#ask(0, HEADER);
    return 0;
  }

  step(): number {
    this.stepped++;
    return steps.indexOf(this.#step());
  }

  #step(): Step {
    if (this.#failure) {
      this.#told = this.#failure;
      this.#failure = undefined;
      this.#phase = 'failed';
      this.#end = 'error';
    }
    if (this.#phase === 'failed') return 'error';
    if (this.#phase === 'ready') return 'ready';
    if (this.#missing.size > 0) return 'need_bytes';
    if (this.#phase === 'generating') return this.#generate();
    if (this.#phase === 'embedding') return this.#embed();
    this.#phase = 'ready';
    return 'ready';
  }

  #generate(): Step {
    const { work = 0, reads, end, fails } = this.script;
    const n = this.#made;
    if (fails?.before === n) {
      this.#failure = fails.error;
      return this.#step();
    }
    if (end?.after === n) return this.#finish(end.why);
    if (n === this.options!.maxTokens) return this.#finish('length');
    if (this.#worked++ < work) return 'working';
    if (reads?.(n) && this.#asked !== n) {
      this.#asked = n;
      this.#ask(this.table[2]!.offset, this.table[2]!.size, this.table[2]!.crc);
      return 'need_bytes';
    }
    this.#worked = 0;
    this.#made++;
    return 'token';
  }

  /** The script's work, one embedding, the end. */
  #embed(): Step {
    if (this.#worked++ < (this.script.work ?? 0)) return 'working';
    return this.#made++ === 0 ? 'embedding' : this.#finish('length');
  }

  #finish(why: End): Step {
    this.#end = why;
    this.#phase = 'ready';
    return 'done';
  }

  #ask(offset: number, size: number, crc?: number): void {
    const ticket = ++this.#tickets;
    this.#missing.add(ticket);
    this.#queue.push({
      ...{ offset, size, ticket, into: ARENA + (offset % ARENA) },
      ...{ crc: crc ?? 0, hasCrc: crc !== undefined },
    });
  }

  nextRequest(): ReadRequest | undefined {
    return this.#queue.shift();
  }

  crc32(at: number, size: number): number {
    return crc32(this.#bytes.slice(at, at + size));
  }

  complete(ticket: number): number {
    const { complete } = this.refuse;
    const refused = typeof complete === 'function' ? complete(ticket) : complete;
    this.#missing.delete(ticket);
    if (!refused) return 0;
    this.#failure = refused;
    return this.#code(refused);
  }

  fail(ticket: number, code: number, size: number): void {
    const sentence = this.#text(0, size);
    const name = Object.entries(errorNumbers).find(([, number]) => number === code)![0] as ErrorName;
    this.calls.push(`fail ${name}`);
    this.#missing.delete(ticket);
    this.#failure = { code: name, sentence };
  }

  stage(parts: readonly Uint8Array[], room = 0): boolean {
    this.#staged = Uint8Array.from(parts.flatMap((part) => [...part]));
    return this.#staged.length + room <= STAGED;
  }

  #text(begin: number, size: number): string {
    return new TextDecoder().decode(this.#staged.slice(begin, begin + size));
  }

  #ids(n: number): number[] {
    return [...new Uint32Array(this.#staged.buffer, 0, n)];
  }

  start(options: Parameters<Instance['start']>[0], sequence: number): number {
    this.calls.push(`start ${String(sequence)}`);
    if (this.refuse.start) return this.#code(this.refuse.start);
    const { textSize, nTokens, stopsSize } = options;
    this.options = options;
    this.text = this.#text(0, textSize);
    this.ids = this.#ids(nTokens);
    this.stops = this.#text(textSize + 4 * nTokens, stopsSize)
      .split('\0')
      .slice(0, -1);
    this.#phase = 'generating';
    this.#end = 'none';
    this.#made = this.#worked = 0;
    this.#asked = -1;
    return 0;
  }

  embed(options: Parameters<Instance['embed']>[0], sequence: number): number {
    this.calls.push(`embed ${String(sequence)}`);
    if (this.refuse.embed) return this.#code(this.refuse.embed);
    const { textSize, nTokens } = options;
    this.embeds.push({ options, text: this.#text(0, textSize), ids: this.#ids(nTokens) });
    this.#phase = 'embedding';
    this.#made = this.#worked = 0;
    return 0;
  }

  /** Of the n-th text: n and a half. */
  embedding(): Float32Array {
    return Float32Array.of(this.embeds.length, 0.5);
  }

  stop(sequence: number): void {
    this.calls.push(`stop ${String(sequence)}`);
    if (this.#phase !== 'generating' && this.#phase !== 'embedding') return;
    this.#end = 'cancelled';
    this.#phase = 'ready';
  }

  rewind(n: number, sequence: number): number {
    this.calls.push(`rewind ${String(n)} ${String(sequence)}`);
    return 0;
  }

  preload(): number {
    this.calls.push('preload');
    this.#phase = 'preloading';
    for (const { offset, size, crc, pinned } of this.table) if (pinned) this.#ask(offset, size, crc);
    return 0;
  }

  close(): void {
    this.calls.push('close');
  }
  delete(): void {}

  sequence(): number {
    return 0;
  }
  token(): number {
    return 100 + this.#made - 1;
  }
  piece(): Uint8Array {
    if (this.#phase !== 'generating') return new Uint8Array();
    return new TextEncoder().encode(this.script.piece?.(this.#made - 1) ?? `<${String(this.#made - 1)}>`);
  }
  end(sequence: number): number {
    return sequence === 0 ? ends.indexOf(this.#end) : 0;
  }
  errorCode(): number {
    return errorNumbers[this.#told!.code];
  }
  sentence(): string {
    return this.#told!.sentence;
  }
  modelHash(): string {
    return 'm0de1';
  }
  logitsHash(): string {
    return `10g175 ${String(this.#made)}`;
  }
  tokenize(): number {
    return 0;
  }
  detokenize(): Uint8Array {
    return new Uint8Array();
  }
  stats(): SessionStats {
    const zero = { budget: 0, modelBytes: 0, weightBytes: 0, pinnedBytes: 0, pinnedSegments: 0, ringSlots: 0 };
    const one = { ringBytes: 0, maxSeqLen: 64, modelSeqLen: 64, chunk: 1, sequences: 1, vocabSize: 512, layers: 1 };
    const expected = { tokenBytes: 0, tokenRate: 0, residentBudget: 0, residentRate: 0 };
    const experts = { expertsChosen: 0, expertsFound: 0, expertBytes: 0 };
    return {
      ...zero,
      ...one,
      ...expected,
      ...experts,
      dim: 2,
      segments: this.table.length,
      kv: 'f16',
      isa: 'fake',
      bytesRead: 0,
    };
  }
  sequenceStats(): SequenceStats {
    return { position: 7 + this.#made, promptTokens: 7, generatedTokens: this.#made };
  }
  memoryMap(): RegionBytes[] {
    return this.map.map(([region, bytes]) => ({ region, bytes }));
  }
  kernelCounts(): [] {
    return [];
  }
  segments(): Segment[] {
    return this.table;
  }

  #code(failure: Failure): number {
    this.#told = failure;
    return errorNumbers[failure.code];
  }
}

export function fakeEngine(): { engine: Engine; instance: FakeInstance } {
  const instance = new FakeInstance();
  return { engine: new Engine('simd', 1, instance, instance.memory), instance };
}

export class FakeSource implements ByteSource {
  size = HEADER + 3000;
  onLoaded: (() => void) | undefined;
  /** How reads end: at once, after a while, when release() is called, or not at all. */
  mode: 'now' | 'later' | 'held' = 'now';
  /** Reads reject with this. */
  error: unknown;
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  kept: readonly Piece[] | undefined;
  readonly pieces: ReadPiece[] = [];
  /** What keep() gives. */
  keeping: Promise<void> = Promise.resolve();
  loaded = 0;
  fromCache = 0;
  cacheState: SourceStats['cacheState'] = 'partial';
  onRestart: () => void = () => undefined;
  readonly #held: (() => void)[] = [];

  read(piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    this.pieces.push(piece);
    const fill = () => {
      if (this.error !== undefined) throw this.error;
      for (let i = 0; i < into.length; i++) into[i] = byteAt(offset + i);
    };
    if (this.mode === 'held') return new Promise<void>((resolve) => this.#held.push(resolve)).then(fill);
    if (this.mode === 'later' || this.error !== undefined) return pause().then(fill);
    fill();
    return undefined;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Ends the reads that are held, or the first so many. */
  release(most = Infinity): void {
    for (const resolve of this.#held.splice(0, Math.min(most, this.#held.length))) resolve();
  }

  accepted(): void {
    this.calls.push('accepted');
  }
  rejected(offset: number, size: number): void {
    this.calls.push(`rejected ${String(offset)} ${String(size)}`);
  }
  keep(pieces: readonly Piece[]): Promise<void> {
    this.calls.push('keep');
    this.kept = pieces;
    return this.keeping;
  }
  async restart(): Promise<void> {
    this.calls.push('restart');
    this.onRestart();
  }
  stats(): SourceStats {
    const none = { network: 0, blob: 0, requests: 0, cachedBytes: 0 };
    return { ...none, cacheState: this.cacheState, cache: this.fromCache, loaded: this.loaded };
  }
  async close(): Promise<void> {
    this.calls.push('close');
    this.release();
  }
}

/** A turn of the event loop and more. */
export const pause = (ms = 1) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Waits until `done`; the test's own time limit ends it otherwise. */
export async function until(done: () => boolean): Promise<void> {
  while (!done()) await pause();
}
