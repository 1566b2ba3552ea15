// A model of another kind as the .qsf file that qsf-convert would write, made as it is read. A module of its own makes
// it: one plans the file and reads the tokenizer, and a second one, in much less memory, makes the segments.
import type { Failure } from '../boundary.gen.js';
import type { Maker, MakerStarter } from '../wasm/maker.js';
import { MiB } from '../constants.js';
import { QSFError } from '../errors.js';
import { MadeFiles } from './made-files.js';
import type { FileRange, Forget, OpenFile } from './made-files.js';
import { Early } from './early.js';
import { checkEnd } from './local.js';
import type { Range } from './ranges.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';

/** Bytes of the parts in which files are kept. */
const PART = MiB;
/** The model, and what makes it. */
export interface Making {
  /** The model's file, or one of several; undefined for a directory. */
  first: { name: string; source: ByteSource } | undefined;
  /** Opens the other files that the model names. */
  open: OpenFile;
  start: () => ReturnType<MakerStarter>;
  /** The type of all matrices. Default: the model's own, or 8bit for floats. */
  quantType?: string | undefined;
  warn: (sentence: string) => void;
  /** Whether the first weights are fetched while the front is read, because all weights will be needed. */
  early?: boolean;
}

export class MadeSource implements ByteSource {
  size = 0;
  readonly makes = true;
  readonly #files: MadeFiles;
  readonly #making: Making;
  /** Everything before the weights. */
  #front = new Uint8Array();
  /** The offset of each segment, ascending, and their sizes. */
  #begins: number[] = [];
  #sizes: number[] = [];
  #maker: Maker | undefined;
  /** The opening under way of a maker that was dropped. */
  #opening: Promise<Maker> | undefined;
  #kind = '';

  /**
   * Opens a model, and owns its first source from then on. Rejects with the converter's errors, and with those of the
   * sources.
   */
  static async open(making: Making): Promise<MadeSource> {
    const source = new MadeSource(making);
    try {
      await source.#plan().catch((error: unknown) => {
        // No caller has seen a byte of the version that is gone.
        if (error instanceof QSFError && error.code === 'file_changed') return source.restart();
        throw error;
      });
      return source;
    } catch (error) {
      await source.close();
      throw error;
    }
  }

  private constructor(making: Making) {
    this.#files = new MadeFiles(making.open, making.first);
    this.#making = making;
  }

  /** The name of the model's file; empty for a directory. */
  get #name(): string {
    return this.#making.first?.name ?? '';
  }

  async #plan(): Promise<void> {
    const held: Forget[] = [];
    const { first, early } = this.#making;
    this.#files.early = first && early ? new Early(first.source) : undefined;
    try {
      const maker = await this.#started();
      await this.#files.complete(() => maker.plan(this.#name), held);
      this.#front = maker.front().slice();
      this.size = maker.size();
      this.#kind = maker.kind();
      const numbers = maker.segments();
      this.#begins = numbers.filter((_, i) => i % 2 === 0);
      this.#sizes = numbers.filter((_, i) => i % 2 === 1);
      for (const sentence of maker.warnings()) this.#making.warn(sentence);
      this.accepted();
      this.#maker = await this.#restored(held);
      this.#files.early?.endFront(Math.min(...runsOf(this.#maker, 0).map(({ offset }) => offset)));
      this.#files.early?.goOn();
    } finally {
      for (const forget of held) forget();
    }
  }

  async #started(): Promise<Maker> {
    const maker = await this.#making.start();
    maker.begin(this.#files, this.#making.quantType ?? '');
    return maker;
  }

  /** Returns a maker that has not read the tokenizer. */
  async #restored(held: Forget[]): Promise<Maker> {
    const maker = await this.#started();
    const unchecked = new Uint8Array(this.#begins.length);
    await this.#files.complete(() => maker.restore(this.#name, this.#front, this.size, unchecked), held);
    return maker;
  }

  get isWatched(): boolean {
    return this.#files.sources.some(({ isWatched }) => isWatched);
  }

  get keeps(): boolean {
    return this.#files.sources.every(({ keeps }) => keeps);
  }

  set onLoaded(loaded: (() => void) | undefined) {
    for (const source of this.#files.sources) source.onLoaded = loaded;
  }

  read({ offset, into }: ReadPiece): Promise<void> | undefined {
    checkEnd('the model', this.size, offset, into.length);
    if (offset + into.length > this.#front.length) return this.#make(offset, into);
    into.set(this.#front.subarray(offset, offset + into.length));
    return undefined;
  }

  async #make(offset: number, into: Uint8Array): Promise<void> {
    let at = offset;
    const end = offset + into.length;
    if (at < this.#front.length) {
      into.set(this.#front.subarray(at));
      at = this.#front.length;
    }
    // The last segment that begins at `at` or before it.
    let segment = Math.max(0, lowerBound(this.#begins, at + 1) - 1);
    for (; at < end && segment < this.#begins.length; segment++) {
      const [begin, size] = [this.#begins[segment]!, this.#sizes[segment]!];
      const from = Math.max(at, begin);
      const to = Math.min(end, begin + size);
      into.fill(0, at - offset, Math.min(from, end) - offset);
      if (from < to) await this.#piece(segment, from - begin, into.subarray(from - offset, to - offset));
      at = Math.max(at, Math.min(to, end), Math.min(from, end));
    }
    into.fill(0, Math.min(at, end) - offset);
  }

  /** Fills `into` with bytes from `begin` on of a segment. */
  async #piece(segment: number, begin: number, into: Uint8Array): Promise<void> {
    const maker = await this.#ready();
    const isWhole = into.length === this.#sizes[segment];
    const make = () => copied(isWhole ? maker.make(segment) : maker.part(segment, begin, into.length), into);
    const held: Forget[] = [];
    try {
      if (isWhole) held.push(await this.#files.fetch(runsOf(maker, segment)));
      await this.#files.complete(make, held, true);
    } finally {
      for (const forget of held) forget();
    }
  }

  /** Fetches the bytes that segments are made of, neighbours together. Returns a function that forgets them. */
  async fetch(pieces: readonly Piece[]): Promise<Forget> {
    const maker = await this.#ready();
    const segments = pieces.map(({ offset, size }) => this.segmentAt(offset, size)).filter((segment) => segment >= 0);
    return this.#files.fetch(segments.flatMap((segment) => runsOf(maker, segment)));
  }

  /** Returns the maker, and opens it again if it was dropped. */
  async #ready(): Promise<Maker> {
    if (this.#maker) return this.#maker;
    const held: Forget[] = [];
    this.#opening ??= this.#restored(held).finally(() => {
      this.#opening = undefined;
      for (const forget of held) forget();
    });
    return (this.#maker = await this.#opening);
  }

  /**
   * Returns the beginning of the front with the checksum of each segment, by which it equals that of the .qsf file.
   */
  async tables(checksums: readonly number[]): Promise<Uint8Array> {
    const maker = await this.#ready();
    return await this.#files.complete(() => copied(maker.tables(checksums)), []);
  }

  get segments(): Range[] {
    return this.#begins.map((offset, i) => ({ offset, size: this.#sizes[i]! }));
  }

  /** Returns the index of the segment with exactly these bytes; -1 if there is none. */
  segmentAt(offset: number, size: number): number {
    const index = lowerBound(this.#begins, offset);
    return this.#begins[index] === offset && this.#sizes[index] === size ? index : -1;
  }

  get front(): Uint8Array {
    return this.#front;
  }

  poll(ms: number): boolean | undefined {
    const polled = this.#files.sources.map((source) => source.poll?.(ms));
    return polled.includes(true) || (polled.includes(false) ? false : undefined);
  }

  accepted(): void {
    for (const source of this.#files.sources) source.accepted();
  }

  rejected(): void {}

  async keep(_pieces: readonly Piece[]): Promise<void> {
    await Promise.all(this.#files.sources.map((source) => source.keep(partsOf(source.size))));
  }

  hide(pieces: readonly Piece[]): void {
    const hidden = new Map<ByteSource, Piece[]>();
    for (const { offset, size } of pieces) {
      const segment = this.segmentAt(offset, size);
      for (const { file, ...range } of segment < 0 || !this.#maker ? [] : runsOf(this.#maker, segment)) {
        const source = this.#files.sources[file]!;
        hidden.set(source, [...(hidden.get(source) ?? []), { ...range, crc: undefined }]);
      }
    }
    for (const [source, runs] of hidden) source.hide?.(runs);
  }

  rest(): void {
    this.#maker = undefined;
    this.#files.early?.forget();
  }

  async restart(): Promise<void> {
    this.rest();
    for (const source of this.#files.sources) await source.restart();
    await this.#plan();
  }

  stats(): SourceStats {
    const all = this.#files.sources.map((source) => source.stats());
    const sum = (of: (stats: SourceStats) => number) => all.reduce((total, stats) => total + of(stats), 0);
    const bytes = this.#files.sources.reduce((total, { size }) => total + size, 0);
    // The made file is about as long as its inputs.
    const share = bytes === 0 ? 1 : sum(({ loaded }) => loaded) / bytes;
    return {
      network: sum(({ network }) => network),
      cache: sum(({ cache }) => cache),
      blob: sum(({ blob }) => blob),
      requests: sum(({ requests }) => requests),
      cachedBytes: sum(({ cachedBytes }) => cachedBytes),
      cacheState: all.find(({ cacheState }) => cacheState !== 'complete')?.cacheState ?? 'complete',
      loaded: Math.floor(this.size * share),
      made: { kind: this.#kind, bytes: (this.#maker?.memory() ?? 0) + this.#front.length },
    };
  }

  async close(): Promise<void> {
    this.rest();
    await Promise.all(this.#files.sources.map((source) => source.close()));
  }
}

/** Returns a copy of the maker's bytes before its next call, which another read may begin. */
function copied(made: Uint8Array | Failure, into?: Uint8Array): Uint8Array | Failure {
  if (!(made instanceof Uint8Array)) return made;
  if (into === undefined) return made.slice();
  into.set(made);
  return into;
}

/** Returns the runs of a segment. */
function runsOf(maker: Maker, segment: number): FileRange[] {
  const numbers = maker.runs(segment);
  const runs: FileRange[] = [];
  for (let i = 0; i < numbers.length; i += 3)
    runs.push({ file: numbers[i]!, offset: numbers[i + 1]!, size: numbers[i + 2]! });
  return runs;
}

/** Returns a whole file in parts. */
function partsOf(size: number): Piece[] {
  const parts: Piece[] = [];
  for (let offset = 0; offset < size; offset += PART)
    parts.push({ offset, size: Math.min(PART, size - offset), crc: undefined });
  return parts;
}

/** Returns the index of the first number that is not below `least`. */
function lowerBound(numbers: readonly number[], least: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
