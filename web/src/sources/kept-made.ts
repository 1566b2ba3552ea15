// A made file that this browser keeps as the .qsf file that it is. Segments are written as they are made, and the front
// last, with their checksums. A file that is kept wholly is opened without a maker.
import { Blocks } from './blocks.js';
import { crc32 } from './crc32.js';
import { MiB } from '../constants.js';
import type { Identity } from './journal.js';
import type { MadeSource } from './made-source.js';
import type { ModelCache } from './model-cache.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';

/** Groups of segments that are made for the cache at a time; the server answers as many requests and one more. */
const TOGETHER = 2;
/** Bytes of a group, unless it is one larger segment. Smaller groups need more requests, each of which waits for an answer. */
const GROUP = 2 * MiB;

export class KeptMadeSource implements ByteSource {
  readonly makes = true;
  readonly #made: MadeSource;
  readonly #cache: ModelCache;
  readonly #at: () => Identity;
  /** Checksums of segments that were made here, by offset. */
  readonly #checksums = new Map<number, number>();
  /** Segments that are being made, by offset. */
  readonly #flying = new Map<number, Promise<void>>();
  readonly #blocks = new Blocks();
  #cacheBytes = 0;
  #closed = false;

  /** Keeps a made file in a cache, both of which it owns. `at` returns the file at the address, as it was opened last. */
  constructor(made: MadeSource, cache: ModelCache, at: () => Identity) {
    this.#made = made;
    this.#cache = cache;
    this.#at = at;
    const kept = cache.identity;
    const own = this.#identity;
    const same = kept?.size === own.size && kept.of === own.of && kept.validator === own.validator;
    if (!same) cache.reset(own);
  }

  get #identity(): Identity {
    const at = this.#at();
    return { ...at, size: this.#made.size, of: at.size };
  }

  get size(): number {
    return this.#made.size;
  }

  get isWatched(): boolean {
    return !this.#cache.complete && this.#made.isWatched;
  }

  get keeps(): boolean {
    return this.#cache.writable;
  }

  set onLoaded(loaded: (() => void) | undefined) {
    this.#made.onLoaded = loaded;
  }

  read(piece: ReadPiece): Promise<void> | undefined {
    const kept = this.#fromCache(piece);
    if (kept === true) return undefined;
    if (kept === false) return this.#make(piece);
    return kept.then((isHere) => (isHere ? undefined : this.#make(piece)));
  }

  /** Whether the bytes are kept. Fills `into` with them. */
  #fromCache({ offset, into }: ReadPiece): boolean | Promise<boolean> {
    if (!this.#cache.verified.covers(offset, into.length)) return false;
    const isLost = () => {
      this.#cache.drop(offset, into.length);
      return false;
    };
    const isHere = () => {
      this.#cacheBytes += into.length;
      return true;
    };
    try {
      const reading = this.#cache.read(offset, into);
      return reading === undefined ? isHere() : reading.then(isHere, isLost);
    } catch {
      return isLost();
    }
  }

  /** Makes bytes, and keeps them if they are a segment. */
  async #make(piece: ReadPiece): Promise<void> {
    const { offset, into } = piece;
    const flying = this.#flying.get(offset);
    if (flying) {
      await flying.catch(() => {});
      if (await this.#fromCache(piece)) return;
    }
    const reading = this.#made.read({ offset, into, crc: undefined });
    if (!reading) return;
    const flight = reading.then(() => this.#put(offset, into));
    this.#flying.set(offset, flight);
    try {
      await flight;
    } finally {
      if (this.#flying.get(offset) === flight) this.#flying.delete(offset);
    }
  }

  #put(offset: number, bytes: Uint8Array): void {
    if (this.#made.segmentAt(offset, bytes.length) < 0 || this.#cache.verified.covers(offset, bytes.length)) return;
    this.#checksums.set(offset, crc32(bytes));
    if (this.#cache.writable && this.#cache.write(offset, bytes)) this.#cache.mark(offset, bytes.length);
  }

  poll(ms: number): boolean | undefined {
    return this.#cache.poll?.(ms);
  }

  accepted(): void {
    this.#made.accepted();
  }

  rejected(offset: number, size: number): void {
    if (this.#cache.verified.covers(offset, size)) this.#cache.drop(offset, size);
  }

  async keep(pieces: readonly Piece[]): Promise<void> {
    if (this.#cache.complete) return;
    const pending = pieces.filter(({ offset, size }) => !this.#cache.verified.covers(offset, size));
    // After an error nothing more is made, because a restart must not meet bytes of an earlier version.
    const errors: unknown[] = [];
    const next = async (): Promise<void> => {
      for (let group = takeGroup(pending); group.length > 0; group = takeGroup(pending)) {
        if (errors.length > 0 || this.#closed || !this.#cache.writable) return;
        const isKept = ({ offset, size }: Piece) => this.#cache.verified.covers(offset, size);
        // The engine may have read some of them meanwhile.
        const forget = await this.#made.fetch(group.filter((one) => !isKept(one) && !this.#flying.has(one.offset)));
        try {
          for (const { offset, size } of group) {
            if (isKept({ offset, size, crc: undefined })) continue;
            const into = this.#blocks.take(size);
            await this.#make({ offset, into, crc: undefined });
            this.#blocks.give(into);
          }
        } finally {
          forget();
        }
      }
    };
    await Promise.all(Array.from({ length: TOGETHER }, () => next().catch((error: unknown) => errors.push(error))));
    if (errors.length > 0) throw errors[0];
    if (!this.#closed && this.#cache.writable) await this.#complete(pieces);
  }

  /** Writes the front with the checksums of all segments, if all are there. */
  async #complete(pieces: readonly Piece[]): Promise<void> {
    const cache = this.#cache;
    if (!pieces.every(({ offset, size }) => cache.verified.covers(offset, size))) return;
    const checksums: number[] = [];
    for (const { offset, size } of pieces) {
      let checksum = this.#checksums.get(offset);
      if (checksum === undefined) {
        const into = this.#blocks.take(size);
        if (!(await this.#fromCache({ offset, into, crc: undefined }))) return;
        checksum = crc32(into);
        this.#blocks.give(into);
      }
      checksums.push(checksum);
    }
    const { front } = this.#made;
    const tables = await this.#made.tables(checksums);
    if (!cache.write(0, front) || !cache.write(0, tables)) return;
    cache.mark(0, front.length);
    cache.markComplete();
    if (cache.complete) this.#made.rest();
  }

  hide(pieces: readonly Piece[]): void {
    this.#made.hide(pieces);
  }

  rest(): void {
    this.#made.rest();
  }

  async restart(): Promise<void> {
    this.#checksums.clear();
    this.#cache.reset(this.#identity);
    await this.#made.restart();
    this.#cache.reset(this.#identity); // another version may have another size
  }

  stats(): SourceStats {
    const { complete, writable, verified } = this.#cache;
    const stats = this.#made.stats();
    const cached = complete ? this.size : verified.total;
    return {
      ...stats,
      cache: this.#cacheBytes,
      cacheState: complete ? 'complete' : writable ? 'partial' : 'off',
      cachedBytes: cached,
      loaded: Math.max(stats.loaded, cached),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#made.close();
    await Promise.allSettled(this.#flying.values());
    await this.#cache.close();
  }
}

/** Takes the next segments of a list, of at most GROUP bytes, and at least one if there is any. */
function takeGroup(pending: Piece[]): Piece[] {
  let bytes = 0;
  const fitting = pending.findIndex(({ size }) => (bytes += size) > GROUP);
  return pending.splice(0, fitting < 0 ? pending.length : Math.max(1, fitting));
}
