// A File or Blob whose ranges are copied to the browser's own file system if they are read again and again, because
// reading is several times as fast there. The copy lasts as long as the source.
import { KiB } from '../constants.js';
import { BlobSource } from './blob.js';
import type { ModelCache } from './model-cache.js';
import { openCopy } from './model-cache.js';
import { RangeSet } from './ranges.js';
import type { ReadPiece, SourceStats } from './source.js';

/** Bytes of the smallest piece that is copied. Smaller ones are rows of tokens, which are another piece each time. */
const LEAST = 4 * KiB;

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

  /** Copies at most `most` bytes. `warn` gets a sentence if the browser refuses that. */
  constructor(blob: Blob, most: number, warn: (sentence: string) => void) {
    super(blob);
    this.#most = most;
    this.#warn = warn;
  }

  override read(piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    const { length } = into;
    const isAgain = length >= LEAST && this.#seen.covers(offset, length);
    if (!isAgain) {
      if (length >= LEAST) this.#seen.add(offset, length);
      return super.read(piece);
    }
    const copy = this.#copy;
    if (copy?.verified.covers(offset, length)) return this.#fromCopy(copy, piece);
    this.#opening ??= this.#open();
    const keep = () => this.#keep(offset, into);
    const reading = super.read(piece);
    if (reading) return reading.then(keep);
    keep();
    return undefined;
  }

  /** Fills `into` from the copy; from the file if the copy has lost the bytes. */
  #fromCopy(copy: ModelCache, piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    const lost = () => {
      copy.drop(offset, into.length);
      return super.read(piece);
    };
    const done = () => void (this.#copied += into.length);
    try {
      const reading = copy.read(offset, into);
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
    if (!copy) this.#refused();
  }

  #keep(offset: number, bytes: Uint8Array): void {
    const copy = this.#copy;
    if (!copy?.writable || copy.verified.total + bytes.length > this.#most) return;
    if (copy.write(offset, bytes)) copy.mark(offset, bytes.length);
    if (!copy.writable) this.#refused();
  }

  #refused(): void {
    this.#warn('The browser refused to copy the streamed weights of the file, which it reads several times as slowly.');
  }

  override rejected(offset: number, size: number): void {
    if (this.#copy?.verified.covers(offset, size)) this.#copy.drop(offset, size);
  }

  override stats(): SourceStats {
    return { ...super.stats(), cache: this.#copied };
  }

  override async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    await this.#copy?.close();
  }
}
