import { describe, expect, it } from 'vitest';

import { HEAD_BYTES, HttpFile, MERGE } from '../../web/src/sources/http.js';
import type { HttpOptions } from '../../web/src/sources/http.js';
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

  describe('at another origin', () => {
    const page = 'https://page.example';
    /** A browser's fetch where the server does not share with the page; `there`: it answers at all. */
    function unshared(there: boolean, asked: RequestInit[]): typeof fetch {
      return async (_input, init = {}) => {
        asked.push(init);
        if (there && init.mode === 'no-cors') return new Response(null);
        throw new TypeError('Failed to fetch');
      };
    }

    it('that does not share, says so at once, and what it must send', async () => {
      const asked: RequestInit[] = [];
      const headers = { Authorization: 'Bearer x' };
      const file = new HttpFile(URL_, { fetch: unshared(true, asked), origin: page, retryDelay: 60_000, headers });
      await expect(file.open()).rejects.toMatchObject({
        code: 'network_error',
        message: expect.stringContaining(`Access-Control-Allow-Origin: ${page}`) as string,
        url: URL_,
      });
      await expect(file.open()).rejects.toMatchObject({
        message: expect.stringContaining('request headers Range, Authorization') as string,
      });
      expect(asked[1]).toMatchObject({ method: 'HEAD', mode: 'no-cors' });
      expect(asked).toHaveLength(4);
    });

    it('that is away, tries again', async () => {
      const asked: RequestInit[] = [];
      const file = new HttpFile(URL_, { fetch: unshared(false, asked), origin: page, retryDelay: 1, retries: 2 });
      await expect(file.open()).rejects.toMatchObject({
        code: 'network_error',
        message: `${URL_} could not be read in 3 tries: Failed to fetch.`,
      });
      expect(asked).toHaveLength(4);
    });
  });

  it('counts no tries where there was one', async () => {
    const away = (async () => new Response(null, { status: 503 })) as typeof fetch;
    await expect(open(new FakeServer(noise(1)), { fetch: away, retries: 0 }).open()).rejects.toMatchObject({
      ...{ code: 'http_status', message: `${URL_} answered 503.`, url: URL_, status: 503 },
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
    expect(server.asked).toHaveLength(4 + 3);
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
    expect(server.asked).toHaveLength(4);
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
    await new Promise((resolve) => setTimeout(resolve, 5));
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

it('what is urgent goes before the background', async () => {
  const server = new FakeServer(noise(SIZE), { chunk: 1000 });
  const file = await opened(server, { parallel: 1 });
  let next = 0;
  file.background = () => {
    if (next >= 5) return [];
    const into = new Uint8Array(10_000);
    return [{ offset: 10_000 * next++, size: 10_000, into, resolve: () => {}, reject: () => {} }];
  };
  file.pump();
  await read(file, 200_000, 10);
  expect(server.spans.slice(1)).toEqual(
    [
      [0, 10_000],
      [200_000, 200_010],
    ].concat(server.spans.slice(3)),
  );
  expect(MERGE.bytes).toBeGreaterThan(1_000_000);
});
