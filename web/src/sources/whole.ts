// The fall-back for servers that answer no ranges. One response is streamed from its first byte into a store, and reads
// wait until it has come far enough. After a broken connection the stream begins again and skips the bytes that the
// store has.
import { MiB } from '../constants.js';
import { QSFError } from '../errors.js';
import type { HttpFile, RemoteFile } from './http.js';
import type { ModelCache } from './model-cache.js';

/** Bytes of the largest file that is held in memory, in addition to the budget, if it cannot be cached. */
export const LARGEST_IN_MEMORY = 64 * MiB;

interface Store {
  write(offset: number, bytes: Uint8Array): boolean;
  read(offset: number, into: Uint8Array): Promise<void> | undefined;
}

export class WholeFile {
  /** Whether the bytes are written to the cache's file. */
  readonly inCache: boolean;
  /** Called when more has arrived, or no more will. */
  onArrived: (() => void) | undefined;
  arrived = 0;
  /** The reason why no more will arrive. */
  failure: { error: unknown } | undefined;
  readonly #http: HttpFile;
  readonly #store: Store;
  #waiting: { end: number; resolve: () => void; reject: (error: unknown) => void }[] = [];

  /** Resolves once the size is known: at the end of the stream if the server does not state it. */
  static async open(
    http: HttpFile,
    remote: RemoteFile,
    cache: ModelCache | undefined,
  ): Promise<{ file: WholeFile; size: number }> {
    if (remote.size !== undefined && cache?.writable) {
      cache.reset({ url: http.url, validator: remote.validator, size: remote.size });
      const file = new WholeFile(http, cache, true);
      void file.#stream(remote);
      return { file, size: remote.size };
    }
    if ((remote.size ?? 0) > LARGEST_IN_MEMORY) throw tooLarge(http.url, remote.size);
    const file = new WholeFile(http, new MemoryStore(remote.size ?? LARGEST_IN_MEMORY), false);
    const ended = file.#stream(remote);
    if (remote.size !== undefined) return { file, size: remote.size };
    await ended;
    if (file.failure) throw file.failure.error;
    return { file, size: file.arrived };
  }

  private constructor(http: HttpFile, store: Store, inCache: boolean) {
    this.#http = http;
    this.#store = store;
    this.inCache = inCache;
  }

  async read(offset: number, into: Uint8Array): Promise<void> {
    const end = offset + into.length;
    if (this.arrived < end) {
      if (this.failure) throw this.failure.error;
      await new Promise<void>((resolve, reject) => this.#waiting.push({ end, resolve, reject }));
    }
    await this.#store.read(offset, into);
  }

  /** Fills `into` from the arrived bytes. */
  copy(offset: number, into: Uint8Array): void {
    void this.#store.read(offset, into);
  }

  async #stream(remote: RemoteFile): Promise<void> {
    let response = remote.whole;
    for (let attempt = 1; ; attempt++) {
      const before = this.arrived;
      try {
        response ??= await this.#http.whole();
        await this.#take(response);
        if (remote.size === undefined || this.arrived === remote.size) return;
        throw this.#http.endedEarly(remote.size - this.arrived);
      } catch (error) {
        response = undefined;
        if (this.arrived > before) attempt = 1;
        try {
          await this.#http.mayRetry(error, attempt);
        } catch (final) {
          this.failure = { error: final };
          for (const { reject } of this.#waiting.splice(0)) reject(final);
          this.onArrived?.();
          return;
        }
      }
    }
  }

  async #take(response: Response): Promise<void> {
    let at = 0;
    for await (const chunk of this.#http.chunks(response)) {
      const fresh = chunk.subarray(Math.max(0, this.arrived - at));
      at += chunk.length;
      if (fresh.length === 0) continue;
      if (!this.#store.write(at - fresh.length, fresh)) throw tooLarge(this.#http.url, undefined);
      this.arrived = at;
      this.#waiting = this.#waiting.filter(({ end, resolve }) => (end <= at ? resolve() : true));
      this.onArrived?.();
    }
  }
}

function tooLarge(url: string, size: number | undefined): QSFError {
  const what = size === undefined ? 'it' : `its ${size} bytes`;
  return new QSFError(
    'no_ranges',
    `${url} answers no range requests, and this browser has no room to keep ${what}: serve the file with ranges`,
    { url },
  );
}

class MemoryStore implements Store {
  readonly #bytes: Uint8Array;

  constructor(size: number) {
    this.#bytes = new Uint8Array(size);
  }

  write(offset: number, bytes: Uint8Array): boolean {
    if (bytes.length > this.#bytes.length - offset) return false;
    this.#bytes.set(bytes, offset);
    return true;
  }

  read(offset: number, into: Uint8Array): undefined {
    into.set(this.#bytes.subarray(offset, offset + into.length));
  }
}
