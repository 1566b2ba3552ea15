// A model at an address: HTTP ranges, and the cache in front of them. Bytes are vouched for in the cache only after
// their CRC was right. What comes from the network or from a cache that another tab writes is checked each time; what
// lies where nobody else writes, once: when it comes, or when it is first read.
import { QSFError } from '../errors.js';
import type { NetworkOptions } from '../types.js';
import { ReadAhead } from './ahead.js';
import { Blocks } from './blocks.js';
import { crc32 } from './crc32.js';
import { HttpFile, MERGE } from './http.js';
import type { Want } from './http.js';
import type { Identity } from './journal.js';
import type { ModelCache } from './model-cache.js';
import { RangeSet, takeRun } from './ranges.js';
import { sleep } from './retry.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';
import { WholeFile } from './whole.js';

/** How long a complete cache waits for the server to say whether the file is still the same, in milliseconds. */
const REVALIDATION = 3000;

export class HttpSource implements ByteSource {
  size = 0;
  onLoaded: (() => void) | undefined;
  readonly #url: string;
  readonly #network: NetworkOptions;
  readonly #cache: ModelCache | undefined;
  #http!: HttpFile;
  #head: Uint8Array | undefined;
  #whole: WholeFile | undefined;
  /** Bytes given to the engine or kept, and right. */
  #here = new RangeSet();
  /** Ranges that lie where only this source writes, and whose bytes it has checked. */
  #checked = new RangeSet();
  /** Reads without CRC, kept until the engine accepts them. */
  #unvouched: { offset: number; bytes: Uint8Array }[] = [];
  /** Reads under way, by offset. */
  #flying = new Map<number, Promise<void>>();
  /** What is fetched for the cache alone lies here meanwhile. */
  readonly #blocks = new Blocks();
  /** What is kept nowhere. */
  readonly #ahead = new ReadAhead({
    gap: MERGE.gap,
    fetch: (offset, into) => this.#http.read(offset, into).then(() => into),
  });
  #pieces: readonly Piece[] = [];
  #pending: Piece[] = [];
  #kept: { resolve: () => void; reject: (error: unknown) => void } | undefined;
  #cacheBytes = 0;
  #earlier = { network: 0, requests: 0 };

  /** Finds out size and version of the file; without the server, from a complete cache. */
  static async open(url: string, cache: ModelCache | undefined, network: NetworkOptions): Promise<HttpSource> {
    const source = new HttpSource(url, cache, network);
    await source.#begin();
    return source;
  }

  private constructor(url: string, cache: ModelCache | undefined, network: NetworkOptions) {
    this.#url = url;
    this.#cache = cache;
    this.#network = network;
  }

  async #begin(): Promise<void> {
    const http = new HttpFile(this.#url, {
      ...this.#network,
      origin: globalThis.location?.origin,
      cacheMode: this.#cache?.owned ? 'no-store' : 'default',
    });
    this.#http = http;
    http.onBytes = () => this.onLoaded?.();
    const kept = this.#cache?.identity;
    if (kept && this.#cache?.complete && (await this.#stillSame(kept))) {
      http.expect(kept.size, kept.validator);
      this.size = kept.size;
      return;
    }
    const remote = await http.open();
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
    const same = kept?.validator === remote.validator && kept.size === remote.size;
    if (!same) this.#cache?.reset({ url: this.#url, validator: remote.validator, size: this.size });
  }

  /** Whether a complete cache is what the server has, as far as can be told: without the server it is. */
  async #stillSame(kept: Identity): Promise<boolean> {
    if (globalThis.navigator?.onLine === false) return true;
    const late = new AbortController();
    try {
      const giveUp = sleep(REVALIDATION, late.signal).then(() => undefined);
      giveUp.catch(() => {});
      const remote = await Promise.race([this.#http.check(), giveUp]);
      if (!remote) return true;
      return remote.validator === kept.validator && (remote.size ?? kept.size) === kept.size;
    } catch (error) {
      // Refused for good: the real request will tell why.
      return error instanceof QSFError && error.code === 'network_error';
    } finally {
      late.abort();
    }
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

  poll(ms: number): boolean | undefined {
    return this.#cache?.poll?.(ms);
  }

  accepted(): void {
    for (const { offset, bytes } of this.#unvouched.splice(0)) this.#keep(offset, bytes);
  }

  rejected(offset: number, size: number): void {
    this.#checked.remove(offset, size);
    this.#here.remove(offset, size);
    if (this.#cache?.verified.covers(offset, size)) this.#cache.drop(offset, size);
  }

  keep(pieces: readonly Piece[]): Promise<void> {
    if (!this.#cache?.writable) return Promise.resolve();
    this.#pieces = pieces;
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

  async restart(): Promise<void> {
    await this.#end();
    this.#ahead.forget();
    this.#earlier = {
      network: this.#earlier.network + this.#http.bytes,
      requests: this.#earlier.requests + this.#http.requests,
    };
    if (this.#cache?.identity) this.#cache.reset(this.#cache.identity);
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

  /** Closes it and keeps nothing. */
  async forget(): Promise<void> {
    const { identity } = this.#cache ?? {};
    if (identity) this.#cache?.reset(identity);
    await this.close();
  }

  async close(): Promise<void> {
    await this.#end();
    await this.#cache?.close();
  }

  async #end(): Promise<void> {
    this.#http.background = undefined;
    this.#http.close();
    this.#kept?.reject(new QSFError('cancelled', 'The source was closed.'));
    this.#kept = undefined;
    await Promise.allSettled(this.#flying.values());
  }

  /** true: done; false: not there, or wrong; a promise that ends in reading from the network if need be. */
  #fromCache(piece: ReadPiece): boolean | Promise<void> {
    const { offset, into } = piece;
    if (!this.#cache?.verified.covers(offset, into.length)) return false;
    const reading = this.#cache.read(offset, into);
    if (reading === undefined) return this.#keptRight(piece);
    const fetch = () => this.#fetch(piece);
    return reading.then(() => (this.#keptRight(piece) ? undefined : fetch()), fetch);
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

  /** Whether bytes from the cache are right; those that are not are dropped there. */
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
    const flying = this.#flying.get(offset);
    if (flying) {
      await flying.catch(() => {});
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

  /** Has wrong bytes fetched again once; throws when they still are. */
  async #check(piece: ReadPiece, again: () => Promise<void>): Promise<void> {
    if (isRight(piece)) return;
    await again();
    if (!isRight(piece)) throw badPiece(this.#url, piece.offset, piece.into.length);
  }

  /** Bytes came for the engine; those without CRC it judges itself. */
  #take({ offset, into, crc }: ReadPiece): void {
    if (crc === undefined) this.#unvouched.push({ offset, bytes: into.slice() });
    else this.#keep(offset, into);
    this.#arrived(offset, into.length);
  }

  /** Puts bytes that are right into the cache. */
  #keep(offset: number, bytes: Uint8Array): void {
    const cache = this.#cache;
    if (!cache || cache.verified.covers(offset, bytes.length)) return;
    if (this.#whole?.inCache || cache.write(offset, bytes)) {
      cache.mark(offset, bytes.length);
      this.#checked.add(offset, bytes.length);
    }
    this.#settle();
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

  /** The next pieces to fetch in the background, as one request. */
  #nextRun(): Want[] {
    this.#pending = this.#pending.filter((piece) => !this.#has(piece));
    const free = this.#pending.filter((piece) => !this.#flying.has(piece.offset));
    const run = this.#cache!.writable ? takeRun(free, MERGE) : [];
    this.#pending = this.#pending.filter((piece) => !run.includes(piece));
    return run.map((piece) => this.#want(piece));
  }

  #want(piece: Piece): Want {
    const into = this.#blocks.take(piece.size);
    let want!: Want;
    const fetched = new Promise<void>((resolve, reject) => {
      want = { offset: piece.offset, size: piece.size, into, resolve, reject };
    });
    const flight = fetched.then(async () => {
      const { offset, crc } = piece;
      await this.#check({ offset, into, crc }, () => this.#http.read(offset, into));
      this.#keep(piece.offset, into);
    });
    const free = () => this.#blocks.give(into);
    flight.then(free, free);
    this.#fly(piece.offset, flight);
    flight.catch((error: unknown) => {
      this.#http.background = undefined;
      this.#kept?.reject(error);
      this.#kept = undefined;
    });
    return want;
  }

  /** Ends keep() when everything is there, or when the browser takes no more. */
  #settle(): void {
    if (!this.#kept) return;
    const all = this.#pieces.every((piece) => this.#has(piece));
    if (!all && this.#cache!.writable) return;
    if (all && this.#unvouched.length === 0) this.#cache!.markComplete();
    this.#http.background = undefined;
    this.#kept.resolve();
    this.#kept = undefined;
  }

  /** Checks what the whole file's stream has brought, and keeps it. */
  #verifyArrived(): void {
    this.onLoaded?.();
    const whole = this.#whole!;
    if (!this.#kept) return;
    while (this.#pending.length > 0 && this.#pending[0]!.offset + this.#pending[0]!.size <= whole.arrived) {
      const piece = this.#pending.shift()!;
      if (this.#has(piece)) continue;
      const bytes = this.#blocks.take(piece.size);
      whole.copy(piece.offset, bytes);
      const right = crc32(bytes) === piece.crc;
      if (right) this.#keep(piece.offset, bytes);
      this.#blocks.give(bytes);
      if (!right) {
        this.#kept?.reject(badPiece(this.#url, piece.offset, piece.size));
        this.#kept = undefined;
        return;
      }
    }
    this.#settle();
  }
}

/** Whether bytes have their CRC, where it is known. */
function isRight({ into, crc, crc32: own }: ReadPiece): boolean {
  return crc === undefined || (own?.() ?? crc32(into)) === crc;
}

function badPiece(url: string, offset: number, size: number): QSFError {
  return new QSFError(
    'bad_checksum',
    `The ${size} bytes at ${offset} of ${url} do not have the checksum that the file states.`,
  );
}
