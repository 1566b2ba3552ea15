// A server as fetch() sees one, with faults on order.

export interface FakeServerOptions {
  etag?: string | null;
  ranges?: boolean;
  /** Content-Length of a whole response; false leaves it out. */
  length?: boolean;
  /** Bytes per chunk of a body. */
  chunk?: number;
}

export interface Asked {
  method: string;
  range: string | null;
  ifRange: string | null;
}

/** What to do instead of answering the n-th request (0 for the first); undefined answers it. */
export type Fault =
  | { kind: 'status'; status: number; headers?: Record<string, string> }
  | { kind: 'refuse' }
  /** No answer ever comes. */
  | { kind: 'silent' }
  /** The body breaks off after so many bytes. */
  | { kind: 'break'; after: number }
  /** Bytes of the body are flipped. */
  | { kind: 'flip' };

export class FakeServer {
  bytes: Uint8Array<ArrayBuffer>;
  etag: string | null;
  ranges: boolean;
  readonly asked: Asked[] = [];
  active = 0;
  mostActive = 0;
  fault: (n: number, asked: Asked) => Fault | undefined = () => undefined;
  readonly #length: boolean;
  readonly #chunk: number;

  constructor(bytes: Uint8Array<ArrayBuffer>, options: FakeServerOptions = {}) {
    this.bytes = bytes;
    this.etag = options.etag === undefined ? '"one"' : options.etag;
    this.ranges = options.ranges ?? true;
    this.#length = options.length ?? true;
    this.#chunk = options.chunk ?? 10_000;
  }

  readonly fetch = async (_input: unknown, init?: RequestInit): Promise<Response> => {
    const sent = new Headers(init?.headers);
    const asked = { method: init?.method ?? 'GET', range: sent.get('Range'), ifRange: sent.get('If-Range') };
    const fault = this.fault(this.asked.length, asked);
    this.asked.push(asked);
    init?.signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (fault?.kind === 'silent') await new Promise(() => {});
    if (fault?.kind === 'refuse') throw new TypeError('Failed to fetch');
    if (fault?.kind === 'status') return new Response(null, { status: fault.status, headers: fault.headers ?? {} });
    const headers: Record<string, string> = {};
    if (this.etag !== null) headers['ETag'] = this.etag;
    const match = /^bytes=(\d+)-(\d+)$/.exec(asked.range ?? '');
    const stale = asked.ifRange !== null && asked.ifRange !== this.etag;
    let body = this.bytes;
    let status = 200;
    if (match && this.ranges && !stale) {
      const begin = Number(match[1]);
      const end = Math.min(Number(match[2]) + 1, this.bytes.length);
      if (begin >= this.bytes.length) return new Response(null, { status: 416 });
      body = this.bytes.slice(begin, end);
      headers['Content-Range'] = `bytes ${begin}-${end - 1}/${this.bytes.length}`;
      status = 206;
    }
    if (this.#length) headers['Content-Length'] = String(body.length);
    if (asked.method === 'HEAD') return new Response(null, { status: 200, headers });
    return new Response(this.#stream(body, fault), { status, headers });
  };

  /** Bytes begin to end (exclusive) of each range that was asked for. */
  get spans(): [number, number][] {
    return this.asked.flatMap(({ range }) => {
      const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? '');
      return match ? [[Number(match[1]), Number(match[2]) + 1] as [number, number]] : [];
    });
  }

  #stream(body: Uint8Array, fault: Fault | undefined): ReadableStream<Uint8Array> {
    let at = 0;
    let open = true;
    const bytes = fault?.kind === 'flip' ? body.map((byte) => byte ^ 1) : body;
    const end = fault?.kind === 'break' ? Math.min(fault.after, bytes.length) : bytes.length;
    this.mostActive = Math.max(this.mostActive, ++this.active);
    const close = () => {
      if (open) this.active--;
      open = false;
    };
    return new ReadableStream({
      pull: async (controller) => {
        await new Promise((resolve) => setTimeout(resolve, 0));
        if (at < end) {
          controller.enqueue(bytes.slice(at, Math.min(at + this.#chunk, end)));
          at = Math.min(at + this.#chunk, end);
          return;
        }
        close();
        if (fault?.kind === 'break') controller.error(new TypeError('terminated'));
        else controller.close();
      },
      cancel: close,
    });
  }
}

/** Bytes that differ everywhere, the same for the same seed. */
export function noise(size: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < size; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}

/** Whether two arrays hold the same bytes; expect().toEqual() would take seconds for a megabyte. */
export function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
