import { describe, expect, it } from 'vitest';

import { HEAD_BYTES, HttpFile, MERGE } from '../../web/src/sources/http.js';
import type { HttpOptions, Want } from '../../web/src/sources/http.js';
import type { Retry } from '../../web/src/progress-types.js';
import { until } from './fake-engine.js';
import { FakeServer, noise } from './fake-server.js';

const URL_ = 'https://example.org/model.qsf';
const SIZE = 300_000;

function open(server: FakeServer, options: HttpOptions = {}): HttpFile {
  return new HttpFile(URL_, {
    fetch: server.fetch,
    retryDelay: 1,
    origin: 'https://example.org',
    cacheMode: 'no-store',
    ...options,
  });
}

async function opened(server: FakeServer, options: HttpOptions = {}): Promise<HttpFile> {
  const file = open(server, options);
  await file.open();
  return file;
}

async function read(file: HttpFile, offset: number, size: number): Promise<Uint8Array> {
  const into = new Uint8Array(size);
  await file.read(offset, into);
  return into;
}

describe('opening', () => {
  it('learns size, version and the first bytes in one request', async () => {
    const server = new FakeServer(noise(SIZE));
    const remote = await open(server).open();
    expect(remote).toMatchObject({ size: SIZE, validator: '"one"', whole: undefined });
    expect(remote.head).toEqual(server.bytes.subarray(0, HEAD_BYTES));
    expect(server.asked).toHaveLength(1);
  });

  it('takes a file that is shorter than the first request', async () => {
    const server = new FakeServer(noise(10));
    expect((await open(server).open()).head).toEqual(server.bytes);
  });

  describe('in a browser', () => {
    const page = 'https://page.example';
    const OTHER = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Content-Range, ETag' };
    const SAFE = ['content-length', 'content-type', 'last-modified'];
    let asked: RequestInit[] = [];

    interface Site {
      /** Of every answer. */
      headers: Record<string, string>;
      /** What happens in place of the n-th answer. */
      fault?: (n: number) => 'broken' | 503 | undefined;
      /** Ranges too are sent encoded, which no browser takes, since it asks for them as they are. */
      zipped?: boolean;
    }

    /** What fetch() does in a page of another origin, or of this one, as the Fetch Standard has it. */
    function browser(site: Site, origin = page): typeof fetch {
      const server = new FakeServer(noise(SIZE));
      let n = 0;
      asked = [];
      return async (input, init = {}) => {
        asked.push(init);
        const isOther = new URL(String(input)).origin !== origin;
        const fault = site.fault?.(n++);
        if (fault === 'broken') throw new TypeError('Failed to fetch');
        const sent = new Headers(init.headers);
        const own = new Headers(site.headers);
        const allowed = (own.get('Access-Control-Allow-Headers') ?? '').toLowerCase().split(', ');
        const answer = fault ? new Response(null, { status: fault }) : await server.fetch(input, init);
        if (isOther && init.mode === 'no-cors') return new Response(null);
        const unsafe = [...sent.keys()].some((name) => name !== 'range' && !allowed.includes(name));
        if (isOther && (fault || unsafe || !own.has('Access-Control-Allow-Origin')))
          throw new TypeError('Failed to fetch');
        if (site.zipped && sent.has('Range')) throw new TypeError('Failed to fetch');
        if (site.zipped) answer.headers.set('Content-Encoding', 'gzip');
        const exposed = (own.get('Access-Control-Expose-Headers') ?? '').toLowerCase().split(', ');
        for (const name of [...answer.headers.keys()])
          if (isOther && !SAFE.includes(name) && !exposed.includes(name)) answer.headers.delete(name);
        return answer;
      };
    }

    const file = (site: Site, options: HttpOptions = {}, origin = page) =>
      new HttpFile(URL_, { fetch: browser(site, origin), origin, retryDelay: 1, retries: 2, ...options });

    it.each(['broken', 503] as const)('tries again after an answer that it cannot see (%s)', async (what) => {
      const opened = await file({ headers: OTHER, fault: (n) => (n === 0 ? what : undefined) }).open();
      expect(opened).toMatchObject({ size: SIZE, validator: '"one"' });
      expect(asked).toHaveLength(2);
    });

    it('says what a server that does not share must send, once all tries have failed', async () => {
      const message =
        `${URL_} could not be read in 3 tries: Failed to fetch; the server answers, but lets pages of ${page} read nothing ` +
        `(CORS): it must send Access-Control-Allow-Origin: ${page}, with errors too, allow the request headers Range, and ` +
        'expose Content-Range and ETag';
      await expect(file({ headers: {} }).open()).rejects.toMatchObject({ code: 'network_error', message, url: URL_ });
      const named = file({ headers: {} }, { headers: { Authorization: 'Bearer x' }, credentials: 'include' });
      await expect(named.open()).rejects.toThrow(/Allow-Credentials: true, .* headers Range, Authorization, and/);
    });

    it('tells a header that may not be sent from a server that does not share', async () => {
      const headers = { 'X-Key': 'x' };
      await expect(file({ headers: OTHER }, { headers }).open()).rejects.toMatchObject({
        code: 'network_error',
        message: expect.stringMatching(/not send the request headers X-Key .* Access-Control-Allow-Headers/) as string,
      });
      const site = { headers: { ...OTHER, 'Access-Control-Allow-Headers': 'X-Key' } };
      expect((await file(site, { headers }).open()).size).toBe(SIZE);
    });

    it.each([
      [page, { ...OTHER, 'Access-Control-Expose-Headers': 'Content-Encoding' }],
      ['https://example.org', {}],
    ])('names the encoding of a server that sends ranges compressed (page at %s)', async (origin, headers) => {
      await expect(file({ headers, zipped: true }, {}, origin).open()).rejects.toMatchObject({
        code: 'no_ranges',
        message:
          `${URL_} could not be read in 3 tries: Failed to fetch; the server sends the file with Content-Encoding gzip, of ` +
          'which a browser reads no range: it must send it as it is',
      });
    });

    it('names what may be wrong with ranges where the encoding cannot be seen', async () => {
      await expect(file({ headers: OTHER, zipped: true }).open()).rejects.toMatchObject({
        code: 'network_error',
        message: expect.stringMatching(/not for a range: .* without Content-Encoding and allow the .* Range/) as string,
      });
    });

    it.each([page, 'https://example.org'])(
      'tells no more than there is of one that is away (page at %s)',
      async (origin) => {
        await expect(file({ headers: OTHER, fault: () => 'broken' }, {}, origin).open()).rejects.toMatchObject({
          code: 'network_error',
          message: `${URL_} could not be read in 3 tries: Failed to fetch`,
        });
      },
    );
  });

  it('tells of each try that is made again, once for all requests of an outage', async () => {
    const told: string[] = [];
    const server = new FakeServer(noise(SIZE), { chunk: 1000 });
    const retries: Retry[] = [];
    const onRetry = (what: string, retry: Retry) => {
      told.push(what);
      retries.push(retry);
    };
    const file = await opened(server, { parallel: 3, retryDelay: 20, retries: 2, onRetry });
    expect(told).toEqual([]);
    let failing = 6;
    server.fault = () => (failing-- > 0 ? { kind: 'status', status: 503 } : undefined);
    await Promise.all([0, 1, 2].map((i) => read(file, 100_000 * i, 5000)));
    const again = (which: string) => `${URL_} answered 503; it is asked again in 0.0 s (try ${which}).`;
    expect(told).toEqual([again('2 of 3'), again('3 of 3')]);
    expect(retries).toMatchObject([
      { attempt: 2, tries: 3 },
      { attempt: 3, tries: 3 },
    ]);
    for (const [i, { seconds }] of retries.entries()) {
      expect(seconds).toBeGreaterThanOrEqual(0.01 * 2 ** i);
      expect(seconds).toBeLessThanOrEqual(0.02 * 2 ** i);
    }
    failing = 1;
    server.fault = () => (failing-- > 0 ? { kind: 'refuse' } : undefined);
    await read(file, 0, 10);
    expect(told.slice(2)).toEqual([expect.stringMatching(`could not be read: Failed to fetch; .* .try 2 of 3`)]);
  });

  it('tells the address with each error that has one', async () => {
    const empty = open(new FakeServer(noise(0)));
    await expect(empty.open()).rejects.toMatchObject({ code: 'truncated', url: URL_ });
    const server = new FakeServer(noise(SIZE));
    const file = await opened(server);
    server.ranges = false;
    await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'no_ranges', url: URL_ });
    server.etag = '"two"';
    await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'file_changed', url: URL_ });
  });

  it('counts no tries where there was one', async () => {
    const away = (async () => new Response(null, { status: 503 })) as typeof fetch;
    await expect(open(new FakeServer(noise(1)), { fetch: away, retries: 0 }).open()).rejects.toMatchObject({
      ...{ code: 'http_status', message: `${URL_} answered 503`, url: URL_, status: 503 },
    });
  });

  it('asks for the size by HEAD where Content-Range cannot be seen', async () => {
    const server = new FakeServer(noise(SIZE));
    const hidden = async (input: unknown, init?: RequestInit) => {
      const response = await server.fetch(input, init);
      response.headers.delete('Content-Range');
      return response;
    };
    const file = open(server, { fetch: hidden as typeof fetch });
    expect((await file.open()).size).toBe(SIZE);
    expect(await read(file, 250_000, 1000)).toEqual(server.bytes.subarray(250_000, 251_000));
  });

  it('gives no whole response of another version than the first', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false });
    const file = open(server);
    await (await file.open()).whole!.body!.cancel();
    expect((await file.whole()).status).toBe(200);
    server.etag = '"two"';
    await expect(file.whole()).rejects.toMatchObject({ code: 'file_changed' });
  });

  it('gives the whole response of a server without ranges, and no size when the body is encoded', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false });
    expect(await open(server).open()).toMatchObject({ size: SIZE, head: undefined });
    const zipped = async (input: unknown, init?: RequestInit) => {
      const response = await server.fetch(input, init);
      response.headers.set('Content-Encoding', 'gzip');
      return response;
    };
    expect(await open(server, { fetch: zipped as typeof fetch }).open()).toMatchObject({ size: undefined });
  });

  it('fails at once where trying again cannot help', async () => {
    const server = new FakeServer(noise(SIZE));
    server.fault = () => ({ kind: 'status', status: 404 });
    await expect(open(server).open()).rejects.toMatchObject({ code: 'http_status' });
    expect(server.asked).toHaveLength(1);
  });

  it.each([
    [{ kind: 'status', status: 503 } as const, 'http_status'],
    [{ kind: 'refuse' } as const, 'network_error'],
  ])('tries again after %o, and gives up in the end', async (fault, code) => {
    const server = new FakeServer(noise(SIZE));
    server.fault = (n) => (n < 3 ? fault : undefined);
    expect((await open(server).open()).size).toBe(SIZE);
    expect(server.asked).toHaveLength(4);
    server.fault = () => fault;
    await expect(open(server, { retries: 2 }).open()).rejects.toMatchObject({ code });
    expect(server.spans).toHaveLength(4 + 3);
  });
});

describe('ranges', () => {
  it('that lie together are one request; each read ends when its bytes are there', async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 1000 });
    const file = await opened(server, { parallel: 1 });
    const order: number[] = [];
    const first = read(file, 0, 10).then(() => order.push(0));
    const reads = [3, 1, 2].map((i) =>
      read(file, 100_000 + 1000 * i, 1000).then((bytes) => (order.push(i), { i, bytes })),
    );
    await first;
    for (const { i, bytes } of await Promise.all(reads)) {
      expect(bytes).toEqual(server.bytes.subarray(100_000 + 1000 * i, 101_000 + 1000 * i));
    }
    // The head, the first read, then 3 alone because it was wanted first, then 1 and 2 together.
    expect(server.spans.slice(1)).toEqual([
      [0, 10],
      [103_000, 104_000],
      [101_000, 103_000],
    ]);
    expect(order).toEqual([0, 3, 1, 2]);
  });

  it('never exceed the number of requests in flight', async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 1000 });
    const file = await opened(server, { parallel: 3 });
    await Promise.all(Array.from({ length: 12 }, (_, i) => read(file, 20_000 * i, 5000)));
    expect(server.mostActive).toBe(3);
  });

  it('go on where a connection broke, and count anew after bytes came', async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 100 });
    const file = await opened(server, { retries: 1 });
    server.fault = (n) => (n <= 4 ? { kind: 'break', after: 1000 } : undefined);
    expect(await read(file, 5000, 10_000)).toEqual(server.bytes.subarray(5000, 15_000));
    expect(server.spans.slice(1)).toEqual([5000, 6000, 7000, 8000, 9000].map((begin) => [begin, 15_000]));
  });

  it('that bring no bytes end in an error after the retries', async () => {
    const server = new FakeServer(noise(SIZE));
    const file = await opened(server, { retries: 2 });
    server.fault = () => ({ kind: 'break', after: 0 });
    await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'network_error' });
    expect(server.spans).toHaveLength(4);
  });

  it('carry If-Range with a strong validator to the own origin only', async () => {
    const strong = new FakeServer(noise(SIZE));
    await read(await opened(strong), 0, 10);
    expect(strong.asked.at(-1)!.ifRange).toBe('"one"');
    const weak = new FakeServer(noise(SIZE), { etag: 'W/"one"' });
    await read(await opened(weak), 0, 10);
    expect(weak.asked.at(-1)!.ifRange).toBeNull();
    const elsewhere = new FakeServer(noise(SIZE));
    await read(await opened(elsewhere, { origin: 'https://page.example' }), 0, 10);
    expect(elsewhere.asked.at(-1)!.ifRange).toBeNull();
  });

  it.each(['https://example.org', 'https://page.example'])(
    'of a file that changed are an error (page at %s)',
    async (origin) => {
      const server = new FakeServer(noise(SIZE));
      const file = await opened(server, { origin });
      server.etag = '"two"';
      await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'file_changed' });
    },
  );

  it('of a file that shrank are an error, with no validator to tell', async () => {
    const server = new FakeServer(noise(SIZE), { etag: null });
    const file = await opened(server);
    server.bytes = server.bytes.slice(0, 100_000);
    await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'file_changed' });
    await expect(read(file, 200_000, 10)).rejects.toMatchObject({ code: 'file_changed' });
  });

  it('that a server stops answering are an error', async () => {
    const server = new FakeServer(noise(SIZE));
    const file = await opened(server);
    server.ranges = false;
    await expect(read(file, 0, 10)).rejects.toMatchObject({ code: 'no_ranges' });
  });

  it('end when the file is closed', async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 1000 });
    const file = await opened(server, { parallel: 1 });
    const reads = [read(file, 0, 100_000), read(file, 200_000, 10)];
    await until(() => server.active > 0);
    file.close();
    for (const settled of await Promise.allSettled(reads)) {
      expect(settled).toMatchObject({ status: 'rejected', reason: { code: 'cancelled' } });
    }
  });

  it('that stall are given up and asked for again', async () => {
    const server = new FakeServer(noise(SIZE));
    let stalled = 0;
    const stalling = (input: unknown, init?: RequestInit) =>
      server.asked.length === 1 && stalled++ === 0 ? new Promise<Response>(() => {}) : server.fetch(input, init);
    const file = await opened(server, { fetch: stalling as typeof fetch, timeout: 20 });
    expect(await read(file, 7, 10)).toEqual(server.bytes.subarray(7, 17));
    expect(stalled).toBeGreaterThan(0);
  });
});

it('what is urgent goes before the background, which goes on after it', async () => {
  const server = new FakeServer(noise(SIZE), { chunk: 1000 });
  const file = await opened(server, { parallel: 1 });
  const into = new Uint8Array(50_000);
  let next = 0;
  const all = new Promise<void>((done, reject) => {
    let left = 5;
    const resolve = () => --left === 0 && done();
    file.background = () => {
      if (next >= 5) return [];
      const offset = 10_000 * next++;
      return [{ offset, size: 10_000, into: into.subarray(offset, offset + 10_000), resolve, reject }];
    };
  });
  file.pump();
  expect(await read(file, 200_000, 10)).toEqual(server.bytes.subarray(200_000, 200_010));
  await all;
  expect(server.spans.slice(1)).toEqual([
    [0, 10_000],
    [200_000, 200_010],
    [10_000, 20_000],
    [20_000, 30_000],
    [30_000, 40_000],
    [40_000, 50_000],
  ]);
  expect(Buffer.compare(into, server.bytes.subarray(0, 50_000))).toBe(0);
  expect(MERGE.bytes).toBeGreaterThan(1_000_000);
});

/** How often the pieces of one request are looked at, for each piece. */
async function looks(n: number): Promise<number> {
  const server = new FakeServer(noise(SIZE));
  const file = await opened(server, { parallel: 1 });
  const into = new Uint8Array(2 * n);
  let looked = 0;
  await new Promise<void>((done, reject) => {
    let left = n;
    const wants = Array.from({ length: n }, (_, i): Want => ({
      get offset() {
        looked++;
        return 2 * i;
      },
      ...{ size: 2, into: into.subarray(2 * i, 2 * i + 2), reject },
      resolve: () => void (--left === 0 && done()),
    }));
    file.background = () => wants.splice(0);
    file.pump();
  });
  expect(Buffer.compare(into, server.bytes.subarray(0, 2 * n))).toBe(0);
  expect(server.asked).toHaveLength(2);
  return looked / n;
}

it('very many pieces are one request, and are looked at as often as few', async () => {
  const [few, many] = [await looks(SIZE / 20), await looks(SIZE / 2)];
  expect(few).toBeLessThanOrEqual(5);
  expect(many).toBeLessThanOrEqual(few + 0.1);
});

it('a web page is no file of a directory, whose server has one for every address that it does not know', async () => {
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': '15' };
  const fetch = async () => new Response('<!doctype html>', { headers });
  const page = (refusesPages: boolean) =>
    new HttpFile('https://models.test/m/added.json', { fetch, refusesPages }).open();
  await expect(page(true)).rejects.toMatchObject({ code: 'http_status', status: 200 });
  expect(await page(false)).toMatchObject({ size: 15 });
});
