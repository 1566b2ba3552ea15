// A File or Blob whose ranges are copied to the browser's own file system if they are read again and again, because
// reading is several times as fast there, except in private windows: a copy that is found slower is removed. Otherwise it
// lasts as long as the source.
import { KiB } from '../constants.js';
import { BlobSource } from './blob.js';
import type { ModelCache } from './model-cache.js';
import { openCopy } from './model-cache.js';
import { RangeSet } from './ranges.js';
import type { ReadPiece, SourceStats } from './source.js';

/** Bytes of the smallest piece that is copied. Smaller ones are rows of tokens, which are another piece each time. */
const LEAST = 4 * KiB;
/** Milliseconds of waiting for the copy after which it is compared with the file. */
const ENOUGH = 100;

/** The bytes of reads, the milliseconds in which they were waited for, and the end of the last one. */
interface Waits {
  bytes: number;
  ms: number;
  last: number;
}
const none = (): Waits => ({ bytes: 0, ms: 0, last: 0 });

/** Returns the result of a read of `size` bytes, which is counted. */
function counted(waits: Waits, size: number, read: () => Promise<void> | undefined): Promise<void> | undefined {
  const begin = performance.now();
  const end = () => {
    waits.bytes += size;
    const now = performance.now();
    waits.ms += now - Math.max(begin, waits.last); // reads at once share their time
    waits.last = now;
  };
  const reading = read();
  if (reading) return reading.finally(end);
  end();
  return undefined;
}

export class CopiedBlob extends BlobSource {
  /** The ranges that were read once. Ranges that are read again are copied. */
  readonly #seen = new RangeSet();
  readonly #most: number;
  readonly #warn: (sentence: string) => void;
  #opening: Promise<void> | undefined;
  #copy: ModelCache | undefined;
  /** Bytes read from the copy. */
  #copied = 0;
  #isClosed = false;
  readonly #ofFile = none();
  readonly #ofCopy = none();

  /** Copies at most `most` bytes. `warn` gets a sentence if the browser refuses that or reads the copy slowly. */
  constructor(blob: Blob, most: number, warn: (sentence: string) => void) {
    super(blob);
    this.#most = most;
    this.#warn = warn;
  }

  override read(piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    const { length } = into;
    if (length < LEAST || this.#isClosed) return super.read(piece);
    if (!this.#seen.covers(offset, length)) {
      this.#seen.add(offset, length);
      return this.#fromFile(piece);
    }
    const copy = this.#copy;
    if (copy?.verified.covers(offset, length)) return this.#fromCopy(copy, piece);
    this.#opening ??= this.#open();
    const keep = () => this.#keep(offset, into);
    const reading = this.#fromFile(piece);
    if (reading) return reading.then(keep);
    keep();
    return undefined;
  }

  #fromFile(piece: ReadPiece): Promise<void> | undefined {
    return counted(this.#ofFile, piece.into.length, () => super.read(piece));
  }

  /** Fills `into` from the copy; from the file if the copy has lost the bytes. */
  #fromCopy(copy: ModelCache, piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    const lost = () => {
      copy.drop(offset, into.length);
      return super.read(piece);
    };
    const done = () => {
      this.#copied += into.length;
      const [of, file] = [this.#ofCopy, this.#ofFile];
      if (of.ms < ENOUGH || of.bytes * file.ms > file.bytes * of.ms || this.#isClosed) return;
      this.#slow();
      void this.#end();
    };
    try {
      const reading = counted(this.#ofCopy, into.length, () => copy.read(offset, into));
      if (reading) return reading.then(done, lost);
    } catch {
      return lost();
    }
    done();
    return undefined;
  }

  async #open(): Promise<void> {
    const copy = await openCopy(this.size, this.#warn);
    if (this.#isClosed) await copy?.close();
    else this.#copy = copy;
    if (!copy) this.#slow();
  }

  #keep(offset: number, bytes: Uint8Array): void {
    const copy = this.#copy;
    if (!copy?.writable || copy.verified.total + bytes.length > this.#most) return;
    if (copy.write(offset, bytes)) copy.mark(offset, bytes.length);
    if (!copy.writable) this.#slow();
  }

  #slow(): void {
    this.#warn(
      "The browser keeps no faster copy of the file's streamed weights: they are read several times as slowly.",
    );
  }

  override rejected(offset: number, size: number): void {
    if (this.#copy?.verified.covers(offset, size)) this.#copy.drop(offset, size);
  }

  override stats(): SourceStats {
    return { ...super.stats(), cache: this.#copied };
  }

  override close(): Promise<void> {
    return this.#end();
  }

  /** Removes the copy. Later reads are from the file. */
  async #end(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    const copy = this.#copy;
    this.#copy = undefined;
    await copy?.close();
  }
}
