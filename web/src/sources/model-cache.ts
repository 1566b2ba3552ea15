// One cached model, as its owner writes it or as another tab reads it.
import { ReadAhead, Trial } from './ahead.js';
import { BlockReader } from './blob.js';
import { Filler } from './filler.js';
import { COMPLETE_LINE, headLine, parseJournal, rangeLine, sealLine, UNSEALED } from './journal.js';
import type { Identity, Journal } from './journal.js';
import {
  COPIES,
  JOURNAL_FILE,
  MODEL_FILE,
  cacheName,
  cacheRoot,
  keepsFiles,
  lock,
  readWhole,
  syncAccess,
} from './opfs.js';
import type { SyncFile } from './opfs.js';
import { RangeSet } from './ranges.js';
import { Reader } from './reader.js';
import { sleep } from './retry.js';
import { sealOf } from './seal.js';

/** Milliseconds that the last page's worker may take to release its files. */
const PATIENCE = 500;
/** Bytes written before the journal's record of them is made durable. */
const FLUSH_BYTES = 8 * 1024 * 1024;
/** Milliseconds of reading after which its speed is known, and bytes per millisecond that copying hardly exceeds. */
const ENOUGH = 25;
const FAST = 2e6;
/** Bytes per millisecond that a disk's files have at least, once they are in the system's memory. */
const SLOW = 5e5;

/**
 * Milliseconds between two checks of another tab's progress, and without progress before its bytes are fetched twice.
 */
const LOOK = 50;
const STANDSTILL = 2000;

export interface ModelCache {
  /** Undefined: the cache has nothing that can be used. */
  readonly identity: Identity | undefined;
  readonly verified: RangeSet;
  readonly complete: boolean;
  /** Whether bytes can be written. Only the owner writes, until the browser refuses more room. */
  readonly writable: boolean;
  readonly owned: boolean;
  /** Whether the server agreed to the caller's headers when it was asked last, or never had to agree to any. */
  readonly isAgreed: boolean;
  /** Notes that the server has agreed to the caller's headers. */
  agree(): void;
  /** Fills `into`. Undefined if that is done already. Rejects if the bytes cannot be read. */
  read(offset: number, into: Uint8Array): Promise<void> | undefined;
  /** Waits for another tab to bring bytes. False if it does not bring them. Rejects when `signal` aborts. */
  arrives?(offset: number, size: number, signal: AbortSignal): Promise<boolean>;
  /** As ByteSource's. */
  poll?(ms: number): boolean | undefined;
  /** Forgets everything and begins a file of this identity. */
  reset(identity: Identity): void;
  /** Writes bytes at their offset without vouching for them. False if they could not be stored. */
  write(offset: number, bytes: Uint8Array): boolean;
  /** Vouches for bytes that were written. */
  mark(offset: number, size: number): void;
  drop(offset: number, size: number): void;
  markComplete(): void;
  /** Releases the files. Removes a file without verified bytes, because it may never have been a model. */
  close(): Promise<void>;
}

/** Gets a sentence if reading is slow. */
type Warn = (sentence: string) => void;

/**
 * Returns the cache of an address that is requested with some headers, or of the file with matrices of a type that is made of
 * it; undefined if the browser has no private file system or no synchronous access to it.
 */
export async function openCache(
  url: string,
  headers?: HeadersInit,
  warn: Warn = () => {},
  quantType?: string,
): Promise<ModelCache | undefined> {
  if (!keepsFiles()) return undefined;
  const root = await cacheRoot(true);
  if (!root) return undefined;
  try {
    const name = await cacheName(url, quantType);
    const release = await lock(name, PATIENCE);
    if (!release) return await SharedCache.open(await root.getDirectoryHandle(name), name, headers);
    try {
      const remove = () => root.removeEntry(name, { recursive: true });
      return await OwnedCache.open(
        await root.getDirectoryHandle(name, { create: true }),
        remove,
        release,
        warn,
        headers,
      );
    } catch (error) {
      release();
      throw error;
    }
  } catch {
    return undefined;
  }
}

/**
 * Returns room for a copy of some bytes of a file, which close() removes; undefined if the browser gives none. Removes
 * the copies of workers that ended without it.
 */
export async function openCopy(size: number, warn: Warn = () => {}): Promise<ModelCache | undefined> {
  const root = await cacheRoot(true, COPIES);
  if (!root) return undefined;
  try {
    const name = `copy-${crypto.randomUUID()}`;
    const release = (await lock(name, PATIENCE)) ?? (() => {});
    const others: string[] = [];
    for await (const { name: other } of root.values()) others.push(other);
    for (const other of others) {
      const left = await lock(other, 0);
      if (left) await root.removeEntry(other, { recursive: true }).catch(() => {});
      left?.();
    }
    const remove = () => root.removeEntry(name, { recursive: true });
    const copy = await OwnedCache.open(await root.getDirectoryHandle(name, { create: true }), remove, release, warn);
    copy.reset({ url: '', validator: null, size });
    copy.isTemporary = true;
    return copy;
  } catch {
    return undefined;
  }
}

class OwnedCache implements ModelCache {
  readonly owned = true;
  writable = true;
  /** Whether close() removes it. */
  isTemporary = false;
  identity: Identity | undefined;
  verified = new RangeSet();
  complete = false;
  readonly #model: SyncFile;
  readonly #file: FileSystemFileHandle;
  /** At most one of them exists, and only if the browser lets two workers open the file. */
  #reader: Reader | undefined;
  #filler: Filler | undefined;
  #ahead: ReadAhead | undefined;
  readonly #trial = new Trial();
  /** Bytes read, and milliseconds of the reads beyond the file's size. */
  #read = 0;
  #took = 0;
  readonly #journal: SyncFile;
  readonly #remove: () => Promise<void>;
  readonly #release: () => void;
  readonly #warn: Warn;
  readonly #encoder = new TextEncoder();
  /** The seals of the caller's headers, and of those that the server agreed to last. */
  #own = UNSEALED;
  #agreed: string | undefined;
  #journalEnd = 0;
  #pending = '';
  #unflushed = 0;

  static async open(
    folder: FileSystemDirectoryHandle,
    remove: () => Promise<void>,
    release: () => void,
    warn: Warn,
    headers?: HeadersInit,
  ): Promise<OwnedCache> {
    const file = await folder.getFileHandle(MODEL_FILE, { create: true });
    const model = await syncAccess(file, PATIENCE);
    try {
      const lines = await folder.getFileHandle(JOURNAL_FILE, { create: true });
      const journal = await syncAccess(lines, PATIENCE);
      try {
        const cache = new OwnedCache(file, model, journal, remove, release, warn);
        cache.#own = await sealOf(headers, cache.#agreed);
        return cache;
      } catch (error) {
        journal.close();
        throw error;
      }
    } catch (error) {
      model.close();
      throw error;
    }
  }

  private constructor(
    file: FileSystemFileHandle,
    model: SyncFile,
    journal: SyncFile,
    remove: () => Promise<void>,
    release: () => void,
    warn: Warn,
  ) {
    this.#file = file;
    this.#model = model;
    this.#journal = journal;
    this.#remove = remove;
    this.#release = release;
    this.#warn = warn;
    const bytes = new Uint8Array(journal.size);
    journal.read(bytes, 0);
    const found = parseJournal(bytes);
    if (!found) return;
    this.identity = found.identity;
    this.verified = found.verified;
    this.complete = found.complete;
    this.#agreed = found.seal;
    this.#journalEnd = found.length;
    journal.truncate(found.length);
    // The journal's time of change records the last opening of the model.
    this.#try(() => journal.write(bytes.subarray(found.length - 1, found.length), found.length - 1));
  }

  read(offset: number, into: Uint8Array): Promise<void> | undefined {
    const rest = (isHere: boolean | undefined) => (isHere ? undefined : this.#readNow(offset, into));
    const elsewhere = this.complete && (this.#ahead?.read(offset, into) ?? this.#fill(offset, into));
    return typeof elsewhere === 'object' ? elsewhere.then(rest) : rest(elsewhere);
  }

  poll(ms: number): boolean | undefined {
    return this.#filler?.poll(ms);
  }

  /** Lets another worker fill shared memory, if that makes passes shorter. */
  #fill(offset: number, into: Uint8Array): Promise<boolean> | undefined {
    if (!this.#filler?.isOpen) return undefined;
    this.#trial.pass(offset);
    return this.#trial.on ? this.#filler.fill(offset, into) : undefined;
  }

  #readNow(offset: number, into: Uint8Array): Promise<void> | undefined {
    const begun = performance.now();
    const got = this.#model.read(into, offset);
    this.#watch(got, performance.now() - begun, into.buffer);
    return got === into.length ? undefined : Promise.reject(new Error('the cached file is short'));
  }

  /**
   * Starts another worker that reads streamed segments. It reads into the engine's memory if that is shared; otherwise
   * it reads into blocks that are copied, and starts only if reading is slow.
   */
  #watch(bytes: number, ms: number, memory: ArrayBufferLike): void {
    const again = (this.#read += bytes) - this.identity!.size;
    if (again > 0) this.#took += ms;
    if (this.#reader || this.#filler || this.#took < ENOUGH || !this.#model.isShared) return;
    if (again < SLOW * this.#took) {
      const rate = Math.round(again / this.#took / 1000);
      this.#warn(
        `The browser reads its private files at ${rate} MB/s, as in private windows: streamed weights are slow.`,
      );
    }
    if (!(memory instanceof ArrayBuffer)) {
      this.#filler = new Filler(this.#file, memory);
    } else if (again <= FAST * this.#took) {
      const reader = new Reader(this.#file, () => (this.#ahead = new ReadAhead(reader, this.#trial)));
      this.#reader = reader;
    }
  }

  get isAgreed(): boolean {
    return mayRead(this.#agreed, this.#own);
  }

  agree(): void {
    if (this.#agreed === this.#own || this.#agreed === UNSEALED) return;
    this.#agreed = this.#own;
    this.#pending += sealLine(this.#own);
    this.#try(() => this.#flush());
  }

  reset(identity: Identity): void {
    this.#ahead?.forget();
    this.identity = identity;
    this.verified = new RangeSet();
    this.complete = false;
    this.#pending = '';
    this.#try(() => {
      this.#journal.truncate(0);
      this.#journal.flush();
      this.#model.truncate(0);
      this.#journalEnd = 0;
      this.#agreed = this.#own;
      this.#pending = headLine(identity, this.#own);
      this.#flush();
    });
  }

  write(offset: number, bytes: Uint8Array): boolean {
    return this.#try(() => {
      if (this.#model.write(bytes, offset) !== bytes.length) throw new Error('no room');
      this.#unflushed += bytes.length;
    });
  }

  mark(offset: number, size: number): void {
    if (!this.writable) return;
    this.verified.add(offset, size);
    this.#pending += rangeLine('have', offset, size);
    if (this.#unflushed >= FLUSH_BYTES) this.#try(() => this.#flush());
    else this.#try(() => this.#writeJournal());
  }

  drop(offset: number, size: number): void {
    this.#ahead?.forget();
    this.verified.remove(offset, size);
    this.complete = false;
    this.#pending += rangeLine('drop', offset, size);
    this.#try(() => this.#writeJournal());
  }

  markComplete(): void {
    if (this.complete || !this.writable) return;
    this.complete = this.#try(() => {
      this.#pending += COMPLETE_LINE;
      this.#flush();
    });
  }

  async close(): Promise<void> {
    this.#try(() => this.#flush());
    this.#model.close();
    this.#journal.close();
    await this.#reader?.close();
    await this.#filler?.close();
    if (this.isTemporary || (!this.complete && this.verified.total === 0)) await this.#remove().catch(() => {});
    this.#release();
  }

  /** The model's bytes are made durable before the journal that vouches for them. */
  #flush(): void {
    this.#model.flush();
    this.#writeJournal();
    this.#journal.flush();
    this.#unflushed = 0;
  }

  #writeJournal(): void {
    const line = this.#encoder.encode(this.#pending);
    if (this.#journal.write(line, this.#journalEnd) !== line.length) throw new Error('no room');
    this.#journalEnd += line.length;
    this.#pending = '';
  }

  /** A refusal, such as a quota, ends writing. Stored bytes can still be read. */
  #try(work: () => void): boolean {
    if (!this.writable) return false;
    try {
      work();
      return true;
    } catch {
      this.writable = false;
      return false;
    }
  }
}

/**
 * A model that another tab keeps and still fetches. It is read through a handle of its own if the browser allows
 * several, otherwise through File objects. A File is a snapshot, so it is replaced after the other tab has written
 * more.
 */
class SharedCache implements ModelCache {
  readonly owned = false;
  readonly writable = false;
  readonly isAgreed: boolean;
  readonly identity: Identity;
  verified: RangeSet;
  complete: boolean;
  readonly #folder: FileSystemDirectoryHandle;
  readonly #name: string;
  /** The time of the other tab's last visible progress. */
  #grown = performance.now();
  #looking: Promise<boolean> | undefined;
  /** Ranges with wrong bytes, for which the other tab is not waited for again. */
  readonly #wrong = new RangeSet();
  readonly #handle: FileSystemFileHandle;
  readonly #model: SyncFile | undefined;
  #reader: BlockReader;

  static async open(
    folder: FileSystemDirectoryHandle,
    name: string,
    headers: HeadersInit | undefined,
  ): Promise<SharedCache | undefined> {
    let journal = await readJournal(folder);
    // The other tab may be about to ask its server for the file's identity.
    for (let looks = STANDSTILL / LOOK; !journal && looks > 0; looks--) {
      await sleep(LOOK, new AbortController().signal);
      journal = await readJournal(folder);
    }
    const handle = await folder.getFileHandle(MODEL_FILE);
    const file = await handle.getFile();
    const model = journal && (await syncAccess(handle, 0).catch(() => undefined));
    const isAgreed = mayRead(journal?.seal, await sealOf(headers, journal?.seal));
    return journal && new SharedCache(folder, name, journal, isAgreed, handle, file, model);
  }

  private constructor(
    folder: FileSystemDirectoryHandle,
    name: string,
    journal: Journal,
    isAgreed: boolean,
    handle: FileSystemFileHandle,
    file: File,
    model: SyncFile | undefined,
  ) {
    this.#folder = folder;
    this.#name = name;
    this.identity = journal.identity;
    this.verified = journal.verified;
    this.complete = journal.complete;
    this.isAgreed = isAgreed;
    this.#handle = handle;
    this.#reader = new BlockReader(file);
    // A handle without sharing would be the only one, and belongs to the owner.
    if (model?.isShared) this.#model = model;
    else model?.close();
  }

  read(offset: number, into: Uint8Array): Promise<void> | undefined {
    return this.#model?.read(into, offset) === into.length ? undefined : this.#readFile(offset, into);
  }

  async arrives(offset: number, size: number, signal: AbortSignal): Promise<boolean> {
    if (this.#wrong.covers(offset, size)) return false;
    for (;;) {
      const isOwned = await (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)));
      if (this.verified.covers(offset, size)) return true;
      if (!isOwned || this.complete || performance.now() - this.#grown > STANDSTILL) return false;
      await sleep(LOOK, signal);
    }
  }

  /** Takes over the other tab's progress. False if the tab is gone or has another file now. */
  async #look(): Promise<boolean> {
    const release = await lock(this.#name, 0);
    release?.();
    const journal = await readJournal(this.#folder);
    if (!journal) return !release; // the other tab may be writing it
    if (headLine(journal.identity) !== headLine(this.identity)) return false;
    if (journal.verified.total !== this.verified.total) this.#grown = performance.now();
    this.verified = journal.verified;
    this.complete = journal.complete;
    for (const [begin, end] of this.#wrong) this.verified.remove(begin, end - begin);
    return !release;
  }

  async #readFile(offset: number, into: Uint8Array): Promise<void> {
    try {
      await this.#reader.read(offset, into);
    } catch {
      this.#reader = new BlockReader(await this.#handle.getFile());
      await this.#reader.read(offset, into);
    }
  }

  agree(): void {}
  reset(): void {
    this.drop(0, this.identity.size);
  }
  write(): boolean {
    return false;
  }
  mark(): void {}
  drop(offset: number, size: number): void {
    this.#wrong.add(offset, size);
    this.verified.remove(offset, size);
  }
  markComplete(): void {}
  async close(): Promise<void> {
    this.#model?.close();
  }
}

const readJournal = async (folder: FileSystemDirectoryHandle): Promise<Journal | undefined> =>
  parseJournal((await readWhole(folder, JOURNAL_FILE)).bytes);

/** Whether a caller with the seal `own` may read a model that the server agreed to give for `agreed`, without asking it. */
const mayRead = (agreed: string | undefined, own: string): boolean =>
  agreed === undefined || agreed === UNSEALED || agreed === own;
