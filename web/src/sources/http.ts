// Byte ranges over HTTP (RFC 9110, section 14): merged, several in flight, retried with back-off, bound to one version
// of the file. Bytes are handed on as they arrive.
import { KiB, MiB } from '../constants.js';
import { QSFError } from '../errors.js';
import type { NetworkOptions } from '../types.js';
import { takeRun } from './ranges.js';
import { release } from './release.js';
import { DEFAULT_RETRY, isTransient, retryDelay, sleep } from './retry.js';
import type { RetryPolicy } from './retry.js';

/** The first request asks for this much, so that most files' tables come with it. */
export const HEAD_BYTES = 64 * KiB;
/** Milliseconds that a server has to show that it is there. */
const PROBE_TIMEOUT = 3000;
export const MERGE = { bytes: 2 * MiB, gap: 4 * KiB };

/** What a server says of a file. */
export interface RemoteFile {
  /** undefined when the server does not tell, or tells the size of an encoding. */
  size: number | undefined;
  validator: string | null;
  /** The first bytes, where ranges are answered. */
  head: Uint8Array | undefined;
  /** The whole file's response, where they are not. */
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

export interface HttpOptions extends NetworkOptions {
  fetch?: typeof fetch;
  /** The origin of the page: If-Range is not sent elsewhere, because it would need the other server's consent. */
  origin?: string;
  /** Given to fetch(). */
  cacheMode?: RequestCache;
}

export class HttpFile {
  readonly url: string;
  requests = 0;
  bytes = 0;
  /** Gives the next request's worth when nothing urgent is wanted; set by who fills a cache. */
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
  #active = 0;
  #size: number | undefined;
  #validator: string | null = null;
  #ifRange: string | undefined;

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

  /** Asks for the beginning of the file, which tells its size, its version and whether ranges are answered. */
  async open(): Promise<RemoteFile> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#probe();
      } catch (error) {
        if (attempt === 1 && isRefused(error)) await this.#checkShared();
        await this.mayRetry(error, attempt);
      }
    }
  }

  /**
   * Throws network_error where another origin's server answers but does not let this page read what it says, which a
   * browser tells nobody apart from a server that is away.
   */
  async #checkShared(): Promise<void> {
    const { origin } = this.#options;
    if (origin === undefined || new URL(this.url).origin === origin) return;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(PROBE_TIMEOUT)]);
    try {
      await this.#fetch(this.url, { method: 'HEAD', mode: 'no-cors', signal });
    } catch {
      return;
    }
    const named = Object.keys(this.#options.headers ?? {});
    const sent = `Access-Control-Allow-Origin: ${origin}`;
    const asked = ['Range', ...named].join(', ');
    throw new QSFError(
      'network_error',
      `${this.url} answers, but does not let pages of ${origin} read it (CORS): its server must send ${sent}, allow the ` +
        `request headers ${asked}, and expose Content-Range and ETag.`,
      { url: this.url },
    );
  }

  /** What the server says of the file, asked once and without its bytes; network_error when it does not answer. */
  async check(): Promise<Pick<RemoteFile, 'size' | 'validator'>> {
    try {
      const response = await this.#request({}, 'HEAD');
      if (!response.ok) throw statusError(this.url, response);
      const validator = validatorOf(response);
      return { size: wholeSize(response), validator };
    } catch (error) {
      if (!(error instanceof Transient)) throw error;
      throw new QSFError('network_error', `${this.url} could not be asked for: ${error.message}.`);
    }
  }

  /** Later responses must be of this version of the file. */
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

  /** Makes requests while there is something to ask for. */
  pump(): void {
    while (this.#active < this.#parallel && !this.#closing.signal.aborted) {
      const run = this.#urgent.length > 0 ? takeRun(this.#urgent, MERGE) : (this.background?.() ?? []);
      if (run.length === 0) return;
      this.#active++;
      void this.#fetchRun(run).finally(() => {
        this.#active--;
        this.pump();
      });
    }
  }

  /** The whole file from its first byte, for servers that answer nothing else; retried by the caller. */
  async whole(): Promise<Response> {
    const response = await this.#request({});
    if (response.status !== 200) throw statusError(this.url, response);
    if (this.#changed(response)) throw fileChanged(this.url);
    return response;
  }

  /** Waits before try `attempt` + 1, or throws what stands in its way. */
  async mayRetry(error: unknown, attempt: number): Promise<void> {
    if (!(error instanceof Transient)) throw error;
    const { url } = this;
    if (attempt > this.#policy.retries) {
      throw error.status === undefined
        ? new QSFError('network_error', `${this.url} could not be read${tries(attempt)}: ${error.message}.`, { url })
        : new QSFError('http_status', `${this.url} answered ${error.status}${tries(attempt)}.`, {
            url,
            status: error.status,
          });
    }
    await sleep(retryDelay(this.#policy, attempt, error.retryAfter), this.#closing.signal);
  }

  /** The error for a body that lacks bytes. */
  endedEarly(bytes: number): Error {
    return new Transient(`the connection ended ${bytes} bytes early`, null);
  }

  /** Every chunk of a response's body, valid until the next is asked for; a stalled one ends in an error. */
  async *chunks(response: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const reader = response.body!.getReader();
    try {
      for (;;) {
        const { done, value } = await withTimeout(reader.read(), this.#timeout, this.#closing.signal);
        if (done) return;
        this.bytes += value.length;
        yield value;
        this.onBytes?.();
        release(value, response);
      }
    } catch (error) {
      this.#closing.signal.throwIfAborted();
      throw new Transient(error instanceof Error ? error.message : String(error), null);
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  close(): void {
    const closed = new QSFError('cancelled', `Reading ${this.url} was given up.`);
    this.#closing.abort(closed);
    for (const want of this.#urgent.splice(0)) want.reject(closed);
  }

  async #probe(): Promise<RemoteFile> {
    const response = await this.#request({ Range: `bytes=0-${HEAD_BYTES - 1}` });
    if (response.status === 416) throw new QSFError('truncated', `${this.url} is empty.`);
    if (response.status !== 200 && response.status !== 206) throw statusError(this.url, response);
    this.#validator = validatorOf(response);
    const ownOrigin = new URL(response.url || this.url).origin === this.#options.origin;
    const usable = this.#validator !== null && !this.#validator.startsWith('W/');
    // With If-Range a browser would not use its own HTTP cache, which is all there is without ours.
    this.#ifRange = usable && ownOrigin && this.#options.cacheMode === 'no-store' ? this.#validator! : undefined;
    if (response.status === 200) {
      this.#size = wholeSize(response);
      return { size: this.#size, validator: this.#validator, head: undefined, whole: response };
    }
    const head = await this.#collect(response, HEAD_BYTES);
    this.#size = contentRange(response)?.total ?? (await this.#sizeByHead());
    const expected = Math.min(HEAD_BYTES, this.#size);
    if (head.length !== expected) throw new Transient(`${head.length} bytes came instead of ${expected}`, null);
    return { size: this.#size, validator: this.#validator, head, whole: undefined };
  }

  /** For servers of another origin that do not let Content-Range be seen. */
  async #sizeByHead(): Promise<number> {
    const response = await this.#request({}, 'HEAD');
    const size = response.ok ? wholeSize(response) : undefined;
    if (size !== undefined) return size;
    throw new QSFError('no_ranges', `${this.url} does not tell its size; let the server expose Content-Range.`);
  }

  async #collect(response: Response, most: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(most);
    let at = 0;
    for await (const chunk of this.chunks(response)) {
      if (chunk.length > most - at)
        throw new QSFError('no_ranges', `${this.url} answers a range with more than was asked for.`);
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes.subarray(0, at);
  }

  async #fetchRun(run: Want[]): Promise<void> {
    const left = [...run];
    // Of the first want that is left.
    let got = 0;
    let attempt = 0;
    while (left.length > 0) {
      let came = false;
      try {
        const begin = left[0]!.offset + got;
        const end = Math.max(...left.map((want) => want.offset + want.size));
        const response = await this.#range(begin, end);
        let at = begin;
        for await (const chunk of this.chunks(response)) {
          if (chunk.length > end - at) throw new Transient('more bytes came than were asked for', null);
          came = true;
          for (const want of left) copyOverlap(chunk, at, want);
          at += chunk.length;
          while (left.length > 0 && left[0]!.offset + left[0]!.size <= at) left.shift()!.resolve();
          got = left.length > 0 ? Math.max(0, at - left[0]!.offset) : 0;
        }
        if (left.length > 0) throw this.endedEarly(end - at);
      } catch (error) {
        attempt = came ? 1 : attempt + 1;
        try {
          await this.mayRetry(error, attempt);
        } catch (final) {
          for (const want of left.splice(0)) want.reject(final);
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
        throw new Transient(`bytes ${range.begin} to ${range.end - 1} came for ${begin} to ${end - 1}`, null);
      }
      return response;
    }
    void response.body?.cancel().catch(() => {});
    if (response.status === 200 && !this.#changed(response)) {
      throw new QSFError('no_ranges', `${this.url} stopped answering range requests.`);
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
      throw new Transient(error instanceof Error ? error.message : String(error), null);
    }
  }
}

/** A failure that may pass by itself. */
class Transient extends Error {
  readonly retryAfter: string | null;
  readonly status: number | undefined;

  constructor(message: string, retryAfter: string | null, status?: number) {
    super(message);
    this.retryAfter = retryAfter;
    this.status = status;
  }
}

/** Whether a fetch failed without an answer. */
const isRefused = (error: unknown) => error instanceof Transient && error.status === undefined;

const tries = (n: number) => (n === 1 ? '' : ` in ${n} tries`);

function statusError(url: string, response: Response): Error {
  const { status } = response;
  void response.body?.cancel().catch(() => {});
  if (isTransient(status)) return new Transient(`status ${status}`, response.headers.get('Retry-After'), status);
  return new QSFError(
    'http_status',
    `${url} answered ${status}${response.statusText ? ` ${response.statusText}` : ''}.`,
    { url, status },
  );
}

/** Which version of the file a response is of; null when the server does not tell, or does not let it be seen. */
function validatorOf(response: Response): string | null {
  return response.headers.get('ETag') ?? response.headers.get('Last-Modified');
}

/** The file's size as a response to a request without range tells it. */
function wholeSize(response: Response): number | undefined {
  const length = response.headers.get('Content-Length');
  return length === null || response.headers.has('Content-Encoding') ? undefined : Number(length);
}

function fileChanged(url: string): QSFError {
  return new QSFError('file_changed', `${url} changed on the server while it was being read.`);
}

/** `bytes 0-99/1234` as begin, end (exclusive) and total; undefined when it is hidden, malformed or without a total. */
export function contentRange(response: Response): { begin: number; end: number; total: number } | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(response.headers.get('Content-Range') ?? '');
  return match ? { begin: Number(match[1]), end: Number(match[2]) + 1, total: Number(match[3]) } : undefined;
}

/** Copies what of `chunk`, which lies at `at` of the file, a want asks for. */
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
