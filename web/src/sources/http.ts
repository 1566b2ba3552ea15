// Byte ranges over HTTP (RFC 9110, section 14): merged, several in flight, retried with back-off, bound to one version
// of the file. Bytes are handed on as they arrive.
import { KiB, MiB } from '../constants.js';
import type { Network } from '../contract.js';
import { QSFError, messageOf } from '../errors.js';
import { endOf, takeRun } from './ranges.js';
import { evidenceOf } from './refusal.js';
import { release } from './release.js';
import { DEFAULT_RETRY, isTransient, retryDelay, sleep } from './retry.js';
import type { RetryPolicy } from './retry.js';
import type { Retry } from '../progress-types.js';

/** Bytes of the first request, enough for most files' tables. */
export const HEAD_BYTES = 64 * KiB;
export const MERGE = { bytes: 2 * MiB, gap: 4 * KiB };

/** The server's information about a file. */
export interface RemoteFile {
  /** Undefined if the server states no size, or the size of an encoding. */
  size: number | undefined;
  validator: string | null;
  /** The first bytes, if the server answers ranges. */
  head: Uint8Array | undefined;
  /** The response with the whole file, if it does not. */
  whole: Response | undefined;
}

/** Bytes wanted; `into` is filled from its start. */
export interface Want {
  offset: number;
  size: number;
  into: Uint8Array;
  resolve(): void;
  reject(error: unknown): void;
}

/** The options of fetching, and the function that fetches; default: fetch(). */
export interface Access extends Network {
  fetch?: typeof fetch;
  /** Whether a web page is no file: some servers answer with one for every address that they do not know. */
  refusesPages?: boolean;
}

export interface HttpOptions extends Access {
  /** The origin of the page. If-Range is not sent elsewhere, because it would need the other server's consent. */
  origin?: string;
  /** Passed to fetch(). */
  cacheMode?: RequestCache;
  /** Gets a sentence about each failure after which the server is asked again, and the next try. */
  onRetry?: ((sentence: string, retry: Retry) => void) | undefined;
}

export class HttpFile {
  readonly url: string;
  requests = 0;
  bytes = 0;
  /** Returns the wants of the next request when no urgent read waits. Set by a source that fills a cache. */
  background: (() => Want[]) | undefined;
  /** Called when bytes have arrived. */
  onBytes: (() => void) | undefined;

  readonly #options: HttpOptions;
  readonly #policy: RetryPolicy;
  readonly #fetch: typeof fetch;
  readonly #parallel: number;
  readonly #timeout: number;
  readonly #closing = new AbortController();
  #urgent: Want[] = [];
  #streams: Want[][] = [];
  #active = 0;
  #size: number | undefined;
  #validator: string | null = null;
  #ifRange: string | undefined;
  /** The last try that was reported since bytes arrived. */
  #told = 0;

  /** Aborts with close(). */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  constructor(url: string, options: HttpOptions = {}) {
    this.url = url;
    this.#options = options;
    this.#policy = {
      ...DEFAULT_RETRY,
      retries: options.retries ?? DEFAULT_RETRY.retries,
      delay: options.retryDelay ?? DEFAULT_RETRY.delay,
    };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#parallel = Math.max(1, options.parallel ?? 3);
    this.#timeout = options.timeout ?? 30_000;
  }

  /** Requests the beginning of the file, and so finds its size, its version and whether ranges are answered. */
  async open(): Promise<RemoteFile> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#probe();
      } catch (error) {
        await this.mayRetry(error, attempt);
      }
    }
  }

  /**
   * Returns the server's information about the file from one request without its bytes. Rejects with network_error if
   * the server does not answer.
   */
  async check(): Promise<Pick<RemoteFile, 'size' | 'validator'>> {
    try {
      const response = await this.#request({}, 'HEAD');
      if (!response.ok) throw statusError(this.url, response);
      const validator = validatorOf(response);
      return { size: wholeSize(response), validator };
    } catch (error) {
      if (!(error instanceof Transient)) throw error;
      throw new QSFError('network_error', `${this.url} could not be asked for: ${error.message}`, { url: this.url });
    }
  }

  /** Returns the version that responses are bound to. */
  get validator(): string | null {
    return this.#validator;
  }

  /** Binds later responses to this version of the file. */
  expect(size: number, validator: string | null): void {
    this.#size = size;
    this.#validator = validator;
  }

  /** Fills `into` with the bytes at `offset`, before anything in the background. */
  read(offset: number, into: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#urgent.push({ offset, size: into.length, into, resolve, reject });
      this.pump();
    });
  }

  /** Fills parts that follow each other from `offset` on, by one request, and returns when each is full. */
  stream(offset: number, parts: readonly Uint8Array[]): Promise<void>[] {
    const run: Want[] = [];
    let at = offset;
    const full = parts.map(
      (into) =>
        new Promise<void>((resolve, reject) => {
          run.push({ offset: at, size: into.length, into, resolve, reject });
          at += into.length;
        }),
    );
    this.#streams.push(run);
    this.pump();
    return full;
  }

  /** Starts requests until nothing is wanted or enough are in flight. */
  pump(): void {
    while (this.#active < this.#parallel && !this.#closing.signal.aborted) {
      const run =
        this.#urgent.length > 0 ? takeRun(this.#urgent, MERGE) : (this.#streams.shift() ?? this.background?.() ?? []);
      if (run.length === 0) return;
      this.#active++;
      void this.#fetchRun(run).finally(() => {
        this.#active--;
        this.pump();
      });
    }
  }

  /**
   * Returns the response with the whole file from its first byte, for servers that answer no ranges. The caller
   * retries.
   */
  async whole(): Promise<Response> {
    const response = await this.#request({});
    if (response.status !== 200) throw statusError(this.url, response);
    if (this.#changed(response)) throw fileChanged(this.url);
    return response;
  }

  /** Waits before try `attempt` + 1, or throws the final error. */
  async mayRetry(error: unknown, attempt: number): Promise<void> {
    if (!(error instanceof Transient)) throw error;
    if (attempt > this.#policy.retries) throw await this.#givenUp(error, attempt);
    const wait = retryDelay(this.#policy, attempt, error.retryAfter);
    // Several requests may fail together.
    const retry = { attempt: attempt + 1, tries: this.#policy.retries + 1, seconds: wait / 1000 };
    if (attempt > this.#told) this.#options.onRetry?.(this.#again(error, retry), retry);
    this.#told = Math.max(this.#told, attempt);
    await sleep(wait, this.#closing.signal);
  }

  #again({ message, status }: Transient, { attempt, tries, seconds }: Retry): string {
    const what = status === undefined ? `could not be read: ${message}` : `answered ${status}`;
    return `${this.url} ${what}; it is asked again in ${seconds.toFixed(1)} s (try ${attempt} of ${tries}).`;
  }

  /** Returns the error after the last try. */
  async #givenUp({ message, status, answered }: Transient, tries: number): Promise<QSFError> {
    const { url } = this;
    const times = tries === 1 ? '' : ` in ${tries} tries`;
    if (status !== undefined) return new QSFError('http_status', `${url} answered ${status}${times}`, { url, status });
    const { origin, headers, credentials } = this.#options;
    const refused = { url, origin, headers, credentials, fetch: this.#fetch, signal: this.#closing.signal };
    const seen = await evidenceOf(refused, answered);
    const why = seen ? `${message}; ${seen.why}` : message;
    return new QSFError(seen?.code ?? 'network_error', `${url} could not be read${times}: ${why}`, { url });
  }

  /** Returns the error for a body that lacks bytes. */
  endedEarly(bytes: number): Error {
    return new Transient(`the connection ended ${bytes} bytes early`);
  }

  /**
   * Yields each chunk of a response's body, valid until the next one is requested. Throws if no chunk arrives in time.
   */
  async *chunks(response: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const reader = response.body!.getReader();
    try {
      for (;;) {
        const { done, value } = await withTimeout(reader.read(), this.#timeout, this.#closing.signal);
        if (done) return;
        this.bytes += value.length;
        this.#told = 0;
        yield value;
        this.onBytes?.();
        release(value, response);
      }
    } catch (error) {
      this.#closing.signal.throwIfAborted();
      throw new Transient(messageOf(error));
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  close(): void {
    const closed = new QSFError('cancelled', `reading ${this.url} was given up`);
    this.#closing.abort(closed);
    for (const want of [...this.#urgent.splice(0), ...this.#streams.splice(0).flat()]) want.reject(closed);
  }

  async #probe(): Promise<RemoteFile> {
    const response = await this.#request({ Range: `bytes=0-${HEAD_BYTES - 1}` });
    if (response.status === 416) throw new QSFError('truncated', `${this.url} is empty`, { url: this.url });
    if (response.status !== 200 && response.status !== 206) throw statusError(this.url, response);
    if (this.#options.refusesPages && response.headers.get('Content-Type')?.startsWith('text/html'))
      throw statusError(this.url, response);
    this.#validator = validatorOf(response);
    const ownOrigin = new URL(response.url || this.url).origin === this.#options.origin;
    const usable = this.#validator !== null && !this.#validator.startsWith('W/');
    // With If-Range a browser does not use its HTTP cache, which is the only cache without ours.
    this.#ifRange = usable && ownOrigin && this.#options.cacheMode === 'no-store' ? this.#validator! : undefined;
    if (response.status === 200) {
      this.#size = wholeSize(response);
      return { size: this.#size, validator: this.#validator, head: undefined, whole: response };
    }
    const head = await this.#collect(response, HEAD_BYTES);
    this.#size = contentRange(response)?.total ?? (await this.#sizeByHead());
    const expected = Math.min(HEAD_BYTES, this.#size);
    if (head.length !== expected) throw new Transient(`${head.length} bytes came instead of ${expected}`);
    return { size: this.#size, validator: this.#validator, head, whole: undefined };
  }

  /** For servers of another origin that do not expose Content-Range. */
  async #sizeByHead(): Promise<number> {
    const response = await this.#request({}, 'HEAD');
    const size = response.ok ? wholeSize(response) : undefined;
    if (size !== undefined) return size;
    throw new QSFError('no_ranges', `${this.url} does not state its size; let the server expose Content-Range`, {
      url: this.url,
    });
  }

  async #collect(response: Response, most: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(most);
    let at = 0;
    for await (const chunk of this.chunks(response)) {
      if (chunk.length > most - at)
        throw new QSFError('no_ranges', `${this.url} answers a range with more than was asked for`, { url: this.url });
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes.subarray(0, at);
  }

  /** Fetches wants that are in file order. */
  async #fetchRun(run: Want[]): Promise<void> {
    const end = endOf(run);
    // Complete wants of the run, and bytes of the next one.
    let done = 0;
    let got = 0;
    let attempt = 0;
    while (done < run.length) {
      let came = false;
      try {
        const begin = run[done]!.offset + got;
        const response = await this.#range(begin, end);
        let at = begin;
        for await (const chunk of this.chunks(response)) {
          if (chunk.length > end - at) throw new Transient('more bytes came than were asked for');
          came = true;
          for (let i = done; i < run.length && run[i]!.offset < at + chunk.length; i++) copyOverlap(chunk, at, run[i]!);
          at += chunk.length;
          while (done < run.length && run[done]!.offset + run[done]!.size <= at) run[done++]!.resolve();
          got = done < run.length ? Math.max(0, at - run[done]!.offset) : 0;
        }
        if (done < run.length) throw this.endedEarly(end - at);
      } catch (error) {
        attempt = came ? 1 : attempt + 1;
        try {
          await this.mayRetry(error, attempt);
        } catch (final) {
          while (done < run.length) run[done++]!.reject(final);
        }
      }
    }
  }

  async #range(begin: number, end: number): Promise<Response> {
    const headers: Record<string, string> = { Range: `bytes=${begin}-${end - 1}` };
    if (this.#ifRange !== undefined) headers['If-Range'] = this.#ifRange;
    const response = await this.#request(headers);
    if (response.status === 206) {
      const range = contentRange(response);
      const total = range?.total ?? this.#size;
      if (this.#changed(response) || total !== this.#size) throw fileChanged(this.url);
      if (range && (range.begin !== begin || range.end !== end)) {
        throw new Transient(`bytes ${range.begin} to ${range.end - 1} came for ${begin} to ${end - 1}`);
      }
      return response;
    }
    void response.body?.cancel().catch(() => {});
    if (response.status === 200 && !this.#changed(response)) {
      throw new QSFError('no_ranges', `${this.url} stopped answering range requests`, { url: this.url });
    }
    if (response.status === 200 || response.status === 412 || response.status === 416) throw fileChanged(this.url);
    throw statusError(this.url, response);
  }

  #changed(response: Response): boolean {
    const validator = validatorOf(response);
    return validator !== null && this.#validator !== null && validator !== this.#validator;
  }

  async #request(headers: Record<string, string>, method = 'GET'): Promise<Response> {
    this.requests++;
    const slow = new AbortController();
    try {
      const request = this.#fetch(this.url, {
        method,
        headers: { ...this.#options.headers, ...headers },
        cache: this.#options.cacheMode ?? 'default',
        signal: AbortSignal.any([this.#closing.signal, slow.signal]),
        ...(this.#options.credentials && { credentials: this.#options.credentials }),
      });
      return await withTimeout(request, this.#timeout, this.#closing.signal);
    } catch (error) {
      slow.abort();
      this.#closing.signal.throwIfAborted();
      if (error instanceof QSFError) throw error;
      throw new Transient(messageOf(error), { answered: false });
    }
  }
}

/** A failure that may pass by itself. */
class Transient extends Error {
  readonly retryAfter: string | null;
  readonly status: number | undefined;
  /** Whether there was an answer. */
  readonly answered: boolean;

  constructor(message: string, how: { retryAfter?: string | null; status?: number; answered?: boolean } = {}) {
    super(message);
    this.retryAfter = how.retryAfter ?? null;
    this.status = how.status;
    this.answered = how.answered ?? true;
  }
}

function statusError(url: string, response: Response): Error {
  const { status } = response;
  void response.body?.cancel().catch(() => {});
  if (isTransient(status)) {
    return new Transient(`status ${status}`, { retryAfter: response.headers.get('Retry-After'), status });
  }
  return new QSFError(
    'http_status',
    `${url} answered ${status}${response.statusText ? ` ${response.statusText}` : ''}`,
    { url, status },
  );
}

/**
 * Returns the version of the file that a response belongs to; null if the server states none, or does not expose it.
 */
function validatorOf(response: Response): string | null {
  return response.headers.get('ETag') ?? response.headers.get('Last-Modified');
}

/** Returns the file's size from a response to a request without range. */
function wholeSize(response: Response): number | undefined {
  const length = response.headers.get('Content-Length');
  return length === null || response.headers.has('Content-Encoding') ? undefined : Number(length);
}

function fileChanged(url: string): QSFError {
  return new QSFError('file_changed', `${url} changed on the server while it was being read`, { url });
}

/**
 * Parses `bytes 0-99/1234` into begin, end (exclusive) and total. Undefined if it is hidden, malformed or without a
 * total.
 */
export function contentRange(response: Response): { begin: number; end: number; total: number } | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(response.headers.get('Content-Range') ?? '');
  return match ? { begin: Number(match[1]), end: Number(match[2]) + 1, total: Number(match[3]) } : undefined;
}

/** Copies the part of `chunk`, at offset `at` of the file, that a want covers. */
function copyOverlap(chunk: Uint8Array, at: number, { offset, size, into }: Want): void {
  const begin = Math.max(at, offset);
  const end = Math.min(at + chunk.length, offset + size);
  if (begin < end) into.set(chunk.subarray(begin - at, end - at), begin - offset);
}

async function withTimeout<T>(work: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
  const waiting = new AbortController();
  const stop = () => waiting.abort();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const late = sleep(ms, waiting.signal).then(() => {
      throw new Error(`nothing came for ${ms} ms`);
    });
    late.catch(() => {});
    return await Promise.race([work, late]);
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}
