// The files of a model of another kind, as the maker reads them: without waiting. Bytes and names that are not known yet
// are noted, and fetched before the maker is called again.
import { KiB } from '../constants.js';
import { QSFError, asError, errorName } from '../errors.js';
import type { Failure } from '../boundary.gen.js';
import type { MakerFiles } from '../wasm/maker.js';
import type { Early } from './early.js';
import type { Range } from './ranges.js';
import type { ByteSource } from './source.js';

/** Opens the file of a name. Resolves with undefined if there is none. */
export type OpenFile = (name: string) => Promise<ByteSource | undefined>;

/** Bytes of a file. */
export interface FileRange extends Range {
  file: number;
}
/** Forgets bytes. */
export type Forget = () => void;
interface Window {
  file: number;
  offset: number;
  bytes: Uint8Array;
}

/**
 * The most bytes of a read that is answered with zeros if they are not there, so that one call finds out about many.
 * They are single numbers, such as scales. The call's result is dropped then.
 */
const FEW = 64;
/** Unwanted bytes between two ranges that cost less than a second read. */
const GAP = 16 * KiB;

export class MadeFiles implements MakerFiles {
  readonly sources: ByteSource[] = [];
  readonly #open: OpenFile;
  /** The numbers of files by name; -1: there is none. */
  readonly #names = new Map<string, number>();
  /** The bytes of the first file that were fetched early. */
  early: Early | undefined;
  #windows: Window[] = [];
  #missing: FileRange[] = [];
  #unknown = new Set<string>();
  #all = false;

  /** `first` is a file that is open already. */
  constructor(open: OpenFile, first?: { name: string; source: ByteSource }) {
    this.#open = open;
    if (first) this.#add(first.name, first.source);
  }

  find(name: string): number {
    const number = this.#names.get(name);
    // After zeros in place of bytes, a call asks for files that the model may not have.
    if (number === undefined && this.#missing.length === 0) this.#unknown.add(name);
    return number ?? -1;
  }

  size(file: number): number {
    return this.sources[file]!.size;
  }

  read(file: number, offset: number, into: Uint8Array): boolean {
    const end = offset + into.length;
    for (let at = offset; at < end;) {
      const window = this.#windows.find(
        ({ file: other, offset: begin, bytes }) => other === file && begin <= at && at < begin + bytes.length,
      );
      if (!window) {
        this.#missing.push({ file, offset: at, size: end - at });
        into.fill(0, at - offset);
        return this.#all || into.length <= FEW;
      }
      const part = window.bytes.subarray(at - window.offset, end - window.offset);
      into.set(part, at - offset);
      at += part.length;
    }
    return true;
  }

  /**
   * Calls the maker until it has all that it reads, and returns its result. Bytes that it misses are fetched; `held` gets
   * the functions that forget them. With `all`, a call goes on without bytes and so finds out about all that it reads.
   * Throws its failure.
   */
  async complete<T>(call: () => T | Failure, held: Forget[], all = false): Promise<T> {
    for (;;) {
      this.#missing = [];
      this.#unknown.clear();
      this.#all = all;
      const result = guarded(call);
      if (this.#missing.length === 0 && this.#unknown.size === 0) return checked(result);
      const names = [...this.#unknown];
      const missing = all ? this.#missing : this.#missing.map((range) => this.#grown(range));
      held.push(await this.fetch(missing));
      for (const name of names) await this.#find(name);
    }
  }

  /** Fetches bytes that are not here yet, and returns a function that forgets them. */
  async fetch(ranges: readonly FileRange[]): Promise<Forget> {
    const absent = ranges.filter((range) => !this.#windows.some((window) => covers(window, range)));
    const windows = together(absent).map(({ file, offset, size }) => ({ file, offset, bytes: new Uint8Array(size) }));
    const read = async ({ file, offset, bytes: into }: Window) =>
      file === 0 && this.early
        ? await this.early.read(offset, into)
        : await this.sources[file]!.read({ offset, into, crc: undefined });
    await Promise.all(windows.map(read));
    this.#windows.push(...windows);
    const gone = new Set<Window>(windows);
    return () => void (this.#windows = this.#windows.filter((window) => !gone.has(window)));
  }

  /** Returns a range, and as much after it as was read before it, because texts and fronts are read to their end. */
  #grown({ file, offset, size }: FileRange): FileRange {
    const own = this.#windows.filter((window) => window.file === file);
    const goesOn = size > FEW && own.some((window) => window.offset + window.bytes.length === offset);
    const before = goesOn ? own.reduce((sum, { bytes }) => sum + bytes.length, 0) : 0;
    return { file, offset, size: Math.min(Math.max(size, before), this.size(file) - offset) };
  }

  async #find(name: string): Promise<void> {
    if (this.#names.has(name)) return;
    const source = await this.#open(name);
    if (source) this.#add(name, source);
    else this.#names.set(name, -1);
  }

  #add(name: string, source: ByteSource): void {
    this.#names.set(name, this.sources.length);
    this.sources.push(source);
  }
}

const covers = ({ file, offset, bytes }: Window, range: FileRange): boolean =>
  file === range.file && offset <= range.offset && range.offset + range.size <= offset + bytes.length;

/** Returns ranges that have all bytes of the given ones, those of neighbours as one. */
function together(ranges: readonly FileRange[]): FileRange[] {
  const out: FileRange[] = [];
  for (const range of [...ranges].sort((a, b) => a.file - b.file || a.offset - b.offset)) {
    const last = out.at(-1);
    const end = range.offset + range.size;
    if (last?.file === range.file && range.offset <= last.offset + last.size + GAP)
      last.size = Math.max(last.size, end - last.offset);
    else out.push({ ...range });
  }
  return out;
}

/** Returns the result of a call of the maker. Its module stops without a sentence if it gets no memory. */
function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (cause) {
    if (!(cause instanceof WebAssembly.RuntimeError)) throw asError(cause);
    const sentence = `the model needs more memory to be read than this browser gives: ${cause.message}`;
    throw new QSFError('out_of_memory', sentence, { cause });
  }
}

const isFailure = (result: unknown): result is Failure =>
  typeof result === 'object' && result !== null && 'sentence' in result;

function checked<T>(result: T | Failure): T {
  if (isFailure(result)) throw new QSFError(errorName(result.code), result.sentence);
  return result;
}
