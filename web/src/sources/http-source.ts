// A model at an address: HTTP ranges, and the cache in front of them. The cache vouches for bytes only after their CRC
// was right. Bytes from the network, or from a cache that another tab writes, are checked at each read. Bytes in a file
// that only this source writes are checked once, when they arrive or when they are first read.
import { QSFError } from '../errors.js';
import { ReadAhead } from './ahead.js';
import { Blocks } from './blocks.js';
import { badPiece, isRight } from './checks.js';
import { HttpFile, MERGE } from './http.js';
import type { Access, Want } from './http.js';
import { sizeAt } from './journal.js';
import type { Identity } from './journal.js';
import { isOfOtherKind } from './kinds.js';
import type { ModelCache } from './model-cache.js';
import { RangeSet, endOf, takeRun } from './ranges.js';
import type { Range } from './ranges.js';
import { isStillSame, notAgreed } from './revalidate.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';
import { WholeFile } from './whole.js';
import type { Retry } from '../progress-types.js';

/** Gets sentences about delays that the user may notice; with a retry, if a server is asked again. */
export type Warn = (sentence: string, retry?: Retry) => void;

export class HttpSource implements ByteSource {
  size = 0;
  onLoaded: (() => void) | undefined;
  readonly #url: string;
  readonly #access: Access;
  #cache: ModelCache | undefined;
  /** Whether this or another source keeps the bytes, so that the browser must not. */
  readonly #isKept: boolean;
  readonly #warn: Warn | undefined;
  #http!: HttpFile;
  #head: Uint8Array | undefined;
  #whole: WholeFile | undefined;
  /** Ranges that the engine has received, except those that it rejected. */
  #here = new RangeSet();
  /** Ranges with checked bytes, of those that the cache vouches for in a file that only this source writes. */
  #checked = new RangeSet();
  /** Reads without CRC that wait for the engine to accept them; their bytes are in the cache's file. */
  #unvouched: Range[] = [];
  /** Reads under way, by offset. */
  #flying = new Map<number, Promise<void>>();
  /** Memory for bytes that are fetched for the cache alone. */
  readonly #blocks = new Blocks(MERGE.bytes);
  /** Reads ahead in files that are not cached. */
  readonly #ahead = new ReadAhead({
    gap: MERGE.gap,
    fetch: (offset, into) => this.#http.read(offset, into).then(() => into),
  });
  /** Ranges that must not be requested from the server. */
  #hidden = new RangeSet();
  #pieces: readonly Piece[] = [];
  /** The number of leading pieces of `#pieces` that were found in the cache. */
  #first = 0;
  #pending: Piece[] = [];
  #kept: { resolve: () => void; reject: (error: unknown) => void } | undefined;
  #cacheBytes = 0;
  #earlier = { network: 0, requests: 0 };

  /**
   * Finds the file's size and version; without the server, from a complete cache. `warn` gets a sentence for each
   * retry, also later.
   */
  static async open(url: string, cache: ModelCache | undefined, access: Access, warn?: Warn): Promise<HttpSource> {
    const source = new HttpSource(url, cache, access, warn);
    await source.#begin();
    return source;
  }

  private constructor(url: string, cache: ModelCache | undefined, access: Access, warn: Warn | undefined) {
    this.#url = url;
    this.#cache = cache;
    this.#isKept = cache?.owned === true;
    this.#access = access;
    this.#warn = warn;
  }

  async #begin(): Promise<void> {
    const http = new HttpFile(this.#url, {
      ...this.#access,
      origin: globalThis.location?.origin,
      cacheMode: this.#isKept ? 'no-store' : 'default',
      onRetry: this.#warn,
    });
    this.#http = http;
    http.onBytes = () => this.onLoaded?.();
    const kept = this.#cache?.identity;
    const isComplete = this.#cache?.complete ?? false;
    if (kept && isComplete && (await isStillSame(http, this.#cache!))) {
      http.expect(kept.size, kept.validator);
      this.size = kept.size;
      return;
    }
    const remote = await http.open().catch((error: unknown) => {
      throw isComplete && !this.#cache!.isAgreed ? notAgreed(error, this.#url) : error;
    });
    if (remote.whole) {
      const { file, size } = await WholeFile.open(http, remote, this.#cache);
      this.#whole = file;
      this.size = size;
      if (!file.inCache) this.#cache?.reset({ url: this.#url, validator: remote.validator, size });
      file.onArrived = () => this.#verifyArrived();
      return;
    }
    this.size = remote.size!;
    this.#head = remote.head;
    const same = kept?.validator === remote.validator && sizeAt(kept) === remote.size;
    // A made file is kept only for the one who makes it.
    if (!same || (this.isMade && !isOfOtherKind(remote.head!)))
      this.#cache?.reset({ url: this.#url, validator: remote.validator, size: this.size });
    else this.#cache?.agree();
  }

  /** Whether the cache has a made file, which is not the one at the address. */
  get isMade(): boolean {
    return this.#cache?.identity?.of !== undefined;
  }

  /** The first bytes, if the server answers ranges and the cache was not enough. */
  get head(): Uint8Array | undefined {
    return this.#head;
  }

  /**
   * Gives the cache to another source, and keeps nothing from now on. `identity` returns the file as it was opened last.
   * Undefined if there is no cache that can be written.
   */
  detach(): { cache: ModelCache; identity: () => Identity } | undefined {
    const cache = this.#cache;
    if (!cache?.owned || !cache.writable) return undefined;
    this.#cache = undefined;
    return { cache, identity: () => ({ url: this.#url, validator: this.#http.validator, size: this.size }) };
  }

  /** A whole response answers every read, and a complete cache requests only bytes that it has lost. */
  get isWatched(): boolean {
    return !this.#whole && !this.#cache?.complete;
  }

  get keeps(): boolean {
    return this.#cache?.writable ?? false;
  }

  read(piece: ReadPiece): Promise<void> | undefined {
    const kept = this.#fromCache(piece);
    if (kept === true) return undefined;
    if (kept !== false) return kept;
    if (this.#fromHead(piece)) return undefined;
    const fetched = this.#fetch(piece);
    this.#fly(piece.offset, fetched);
    return fetched;
  }

  stream(offset: number, parts: readonly Uint8Array[]): Promise<void>[] | undefined {
    if (this.#cache || this.#whole) return undefined;
    let end = offset;
    return this.#http.stream(offset, parts).map((full, i) => {
      const at = end;
      end += parts[i]!.length;
      return full.then(() => this.#arrived(at, parts[i]!.length));
    });
  }

  poll(ms: number): boolean | undefined {
    return this.#cache?.poll?.(ms);
  }

  accepted(): void {
    for (const { offset, size } of this.#unvouched.splice(0)) this.#vouch(offset, size);
    this.#settle();
  }

  rejected(offset: number, size: number): void {
    this.#here.remove(offset, size);
    this.#unvouched = this.#unvouched.filter((range) => range.offset !== offset);
    if (this.#cache?.verified.covers(offset, size)) this.#cache.drop(offset, size);
  }

  keep(pieces: readonly Piece[]): Promise<void> {
    if (!this.#cache?.writable) return Promise.resolve();
    this.#pieces = pieces;
    this.#first = 0;
    this.#pending = pieces.filter((piece) => !this.#has(piece)).sort((a, b) => a.offset - b.offset);
    return new Promise((resolve, reject) => {
      this.#kept = { resolve, reject };
      if (this.#whole) {
        this.#verifyArrived();
        return;
      }
      this.#http.background = () => this.#nextRun();
      this.#settle();
      this.#http.pump();
    });
  }

  hide(pieces: readonly Piece[]): void {
    this.#hidden = new RangeSet();
    for (const { offset, size } of pieces) this.#hidden.add(offset, size);
  }

  async restart(): Promise<void> {
    await this.#end();
    this.#hidden = new RangeSet();
    this.#ahead.forget();
    this.#earlier = {
      network: this.#earlier.network + this.#http.bytes,
      requests: this.#earlier.requests + this.#http.requests,
    };
    const { isMade } = this;
    this.#forgetCache();
    if (isMade) throw this.#changed('the cached copy of', 'is damaged, and was removed: open the model again');
    this.#head = this.#whole = undefined;
    this.#here = new RangeSet();
    this.#checked = new RangeSet();
    this.#unvouched = [];
    await this.#begin();
  }

  stats(): SourceStats {
    const cache = this.#cache;
    const complete = cache?.complete ?? false;
    const cached = complete ? this.size : (cache?.verified.total ?? 0);
    return {
      network: this.#earlier.network + this.#http.bytes,
      requests: this.#earlier.requests + this.#http.requests,
      cache: this.#cacheBytes,
      blob: 0,
      cacheState:
        !cache || (cache.owned && !cache.writable)
          ? 'off'
          : !cache.owned
            ? 'shared'
            : complete
              ? 'complete'
              : 'partial',
      cachedBytes: cached,
      loaded: Math.max(cached, this.#whole ? this.#whole.arrived : this.#here.total),
    };
  }

  /** Closes the source and keeps nothing. */
  async forget(): Promise<void> {
    this.#forgetCache();
    await this.close();
  }

  #forgetCache(): void {
    if (!this.#cache?.identity) return;
    const { of, ...identity } = this.#cache.identity;
    this.#cache.reset({ ...identity, size: of ?? identity.size });
  }

  async close(): Promise<void> {
    await this.#end();
    await this.#cache?.close();
  }

  async #end(): Promise<void> {
    this.#http.background = undefined;
    this.#http.close();
    this.#kept?.reject(new QSFError('cancelled', 'the source was closed'));
    this.#kept = undefined;
    await Promise.allSettled(this.#flying.values());
  }

  /** True: done. False: not cached, or wrong. A promise falls back to the network if need be. */
  #fromCache(piece: ReadPiece): boolean | Promise<void> {
    const { offset, into } = piece;
    if (!this.#cache?.verified.covers(offset, into.length)) return false;
    // The cache no longer vouches for bytes that cannot be read, so that they are fetched and written again, once.
    const isLost = () => {
      this.#cache!.drop(offset, into.length);
      return false;
    };
    let reading: Promise<void> | undefined;
    try {
      reading = this.#cache.read(offset, into);
    } catch {
      return isLost();
    }
    if (reading === undefined) return this.#keptRight(piece);
    return reading
      .then(() => this.#keptRight(piece), isLost)
      .then((isRight) => (isRight ? undefined : this.#fetch(piece)));
  }

  #fromHead(piece: ReadPiece): boolean {
    const { offset, into } = piece;
    const head = this.#head;
    if (!head || offset + into.length > head.length) return false;
    into.set(head.subarray(offset, offset + into.length));
    if (!isRight(piece)) return false;
    this.#take(piece);
    return true;
  }

  /** Whether bytes from the cache are right. Drops wrong bytes from it. */
  #keptRight(piece: ReadPiece): boolean {
    const { offset, into, crc } = piece;
    if (crc !== undefined && !this.#checked.covers(offset, into.length)) {
      if (!isRight(piece)) {
        this.#cache!.drop(offset, into.length);
        return false;
      }
      if (this.#cache!.owned) this.#checked.add(offset, into.length);
    }
    this.#cacheBytes += into.length;
    this.#arrived(offset, into.length);
    return true;
  }

  async #fetch(piece: ReadPiece): Promise<void> {
    const { offset, into } = piece;
    if (this.#isHidden(piece) && !this.#whole) throw this.#lost(piece);
    const flying = this.#flying.get(offset);
    if (flying) {
      await flying.catch(() => {});
    } else if (this.#cache?.arrives && !this.#whole) {
      const { closing } = this.#http;
      await this.#cache.arrives(offset, into.length, closing);
      closing.throwIfAborted();
    }
    if (flying || this.#cache?.arrives) {
      const kept = this.#fromCache(piece);
      if (kept === true) return;
      if (kept !== false) return kept;
    }
    const transfer = () => (this.#whole ? this.#whole.read(offset, into) : this.#http.read(offset, into));
    const isStreamed = !this.#whole && !this.#cache?.writable;
    if (!isStreamed || !(await this.#ahead.read(offset, into))) await transfer();
    await this.#check(piece, transfer);
    this.#take(piece);
  }

  /** Whether bytes must not be requested: their reads would show parts of the text, or the server has other bytes there. */
  #isHidden({ offset, into }: ReadPiece): boolean {
    return this.isMade || (into.length > 0 && this.#hidden.covers(offset, into.length));
  }

  /**
   * Returns the error for a hidden piece that is wrong or no longer cached. It is fetched when the model is opened
   * again.
   */
  #lost({ offset, into }: ReadPiece): QSFError {
    if (this.#cache?.verified.covers(offset, into.length)) this.#cache.drop(offset, into.length);
    const why = this.isMade ? '' : '; a fetch now would show its server parts of the text';
    return this.#changed('a part of the cached copy of', `is lost: open the model again${why}`);
  }

  #changed(before: string, after: string): QSFError {
    return new QSFError('file_changed', `${before} ${this.#url} ${after}`, { url: this.#url });
  }

  /** Fetches wrong bytes again once. Throws bad_checksum if they are wrong again. */
  async #check(piece: ReadPiece, again: () => Promise<void>): Promise<void> {
    if (isRight(piece)) return;
    await again();
    if (!isRight(piece)) throw badPiece(this.#url, piece.offset, piece.into.length);
  }

  /** Accounts for bytes that arrived for the engine. Without a CRC, the engine judges them itself. */
  #take({ offset, into, crc }: ReadPiece): void {
    if (crc !== undefined) this.#keep(offset, into);
    else if (this.#put(offset, into)) this.#unvouched.push({ offset, size: into.length });
    this.#arrived(offset, into.length);
  }

  /** Puts right bytes into the cache. */
  #keep(offset: number, bytes: Uint8Array): void {
    if (this.#put(offset, bytes)) this.#vouch(offset, bytes.length);
    this.#settle();
  }

  /** Puts bytes into the cache's file if it lacks them. Returns whether the cache may vouch for them. */
  #put(offset: number, bytes: Uint8Array): boolean {
    const cache = this.#cache;
    if (!cache || cache.verified.covers(offset, bytes.length)) return false;
    return this.#whole?.inCache === true || cache.write(offset, bytes);
  }

  #vouch(offset: number, size: number): void {
    this.#cache!.mark(offset, size);
    this.#checked.add(offset, size);
  }

  #arrived(offset: number, size: number): void {
    this.#here.add(offset, size);
    this.onLoaded?.();
  }

  #fly(offset: number, flight: Promise<void>): void {
    this.#flying.set(offset, flight);
    const land = () => {
      if (this.#flying.get(offset) === flight) this.#flying.delete(offset);
    };
    flight.then(land, land);
  }

  #has({ offset, size }: Piece): boolean {
    return this.#cache!.verified.covers(offset, size);
  }

  /** Returns the next pieces to fetch in the background, as one request into one block. */
  #nextRun(): Want[] {
    this.#pending = this.#pending.filter((piece) => !this.#has(piece));
    const free = this.#pending.filter((piece) => !this.#flying.has(piece.offset));
    const run = this.#cache!.writable ? takeRun(free, MERGE) : [];
    const [first] = run;
    if (!first) return [];
    const taken = new Set(run);
    this.#pending = this.#pending.filter((piece) => !taken.has(piece));
    let block: Uint8Array<ArrayBuffer>;
    try {
      block = this.#blocks.take(endOf(run) - first.offset);
    } catch (error) {
      this.#giveUp(error);
      return [];
    }
    let used = run.length;
    const done = () => {
      if (--used === 0) this.#blocks.give(block);
    };
    return run.map((piece) => {
      const at = piece.offset - first.offset;
      return this.#want(piece, block.subarray(at, at + piece.size), done);
    });
  }

  #want(piece: Piece, into: Uint8Array<ArrayBuffer>, done: () => void): Want {
    let want!: Want;
    const fetched = new Promise<void>((resolve, reject) => {
      want = { offset: piece.offset, size: piece.size, into, resolve, reject };
    });
    const flight = fetched.then(async () => {
      const { offset, crc } = piece;
      await this.#check({ offset, into, crc }, () => this.#http.read(offset, into));
      this.#keep(piece.offset, into);
    });
    flight.then(done, done);
    this.#fly(piece.offset, flight);
    flight.catch((error: unknown) => this.#giveUp(error));
    return want;
  }

  /** Ends keep() when all pieces are cached, or when the browser takes no more. */
  #settle(): void {
    if (!this.#kept) return;
    const pieces = this.#pieces;
    while (this.#first < pieces.length && this.#has(pieces[this.#first]!)) this.#first++;
    // A piece may have been dropped after the check above.
    const all = this.#first === pieces.length && pieces.every((piece) => this.#has(piece));
    if (!all && this.#cache!.writable) return;
    if (all && this.#unvouched.length === 0) this.#cache!.markComplete();
    this.#http.background = undefined;
    this.#kept.resolve();
    this.#kept = undefined;
  }

  /** Ends keep() in failure. */
  #giveUp(error: unknown): void {
    this.#http.background = undefined;
    this.#kept?.reject(error);
    this.#kept = undefined;
  }

  /** Checks the arrived bytes of the whole file's stream, and keeps them. */
  #verifyArrived(): void {
    this.onLoaded?.();
    const whole = this.#whole!;
    if (!this.#kept) return;
    try {
      while (this.#pending.length > 0 && endOf([this.#pending[0]!]) <= whole.arrived) {
        const piece = this.#pending.shift()!;
        if (!this.#has(piece)) this.#verify(piece, whole);
      }
      this.#settle();
      if (whole.failure) this.#giveUp(whole.failure.error);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #verify({ offset, size, crc }: Piece, whole: WholeFile): void {
    const bytes = this.#blocks.take(size);
    try {
      whole.copy(offset, bytes);
      if (!isRight({ offset, into: bytes, crc })) throw badPiece(this.#url, offset, size);
      this.#keep(offset, bytes);
    } finally {
      this.#blocks.give(bytes);
    }
  }
}
