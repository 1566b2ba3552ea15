import { describe, expect, it, vi } from 'vitest';

import { HttpSource } from '../../web/src/sources/http-source.js';
import { FakeCache, SIZE, TABLES, URL_, open, openModel, piecesOf, read } from './fake-cache.js';
import { FakeServer, noise, same } from './fake-server.js';

describe('from a server without ranges', () => {
  it('keeps a file whose size the server did not tell', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false, length: false });
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
    expect(cache).toMatchObject({ complete: true, identity: { url: URL_, size: SIZE } });
    server.fault = () => ({ kind: 'refuse' });
    expect((await open(server, cache)).size).toBe(SIZE);
  });

  it('streams the whole file into the cache, across broken connections', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false });
    const cache = new FakeCache();
    server.fault = (n) => (n < 2 ? { kind: 'break', after: 300_000 * (n + 1) } : undefined);
    const source = await openModel(server, cache);
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
    expect(cache.complete).toBe(true);
    expect(server.asked).toHaveLength(3);
  });

  it('goes on after each connection that brought bytes, and stores none twice', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false });
    const cache = new FakeCache();
    const write = vi.spyOn(cache, 'write');
    // One more try is allowed in a row.
    server.fault = (n) => (n < 4 ? { kind: 'break', after: 200_000 * (n + 1) } : undefined);
    const source = await HttpSource.open(URL_, cache, { fetch: server.fetch, retryDelay: 1, retries: 1 } as never);
    await read(source, 0, TABLES);
    source.accepted();
    await source.keep(piecesOf(server.bytes));
    expect(server.asked).toHaveLength(5);
    expect(same(cache.bytes, server.bytes)).toBe(true);
    let end = 0;
    for (const [offset, bytes] of write.mock.calls) {
      expect(offset).toBe(end);
      end += bytes.length;
    }
    expect(end).toBe(SIZE);
  });

  it('holds it in memory where there is no cache', async () => {
    for (const length of [true, false]) {
      const server = new FakeServer(noise(SIZE), { ranges: false, length });
      const source = await openModel(server);
      expect(source.size).toBe(SIZE);
      const { offset, size, crc } = piecesOf(server.bytes).at(-1)!;
      expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
      expect(server.asked).toHaveLength(1);
    }
  });

  it('fails to keep it when the stream has failed for good, also when nobody reads', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false, chunk: 2000 });
    server.fault = (n) => (n === 0 ? { kind: 'break', after: 300_000 } : { kind: 'status', status: 404 });
    const source = await openModel(server, new FakeCache());
    const keeping = () => source.keep(piecesOf(server.bytes));
    await expect(keeping()).rejects.toMatchObject({ code: 'http_status', status: 404 });
    await expect(keeping()).rejects.toMatchObject({ code: 'http_status', status: 404 });
  });

  it('fails to keep it when there is no memory to check it in', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false, chunk: 2000 });
    const source = await openModel(server, new FakeCache());
    vi.stubGlobal('ArrayBuffer', function refuse() {
      throw new RangeError('Array buffer allocation failed');
    });
    const kept = source.keep(piecesOf(server.bytes));
    await expect(kept).rejects.toMatchObject({ code: 'out_of_memory' });
    vi.unstubAllGlobals();
  });

  it('says so where that is too much', async () => {
    const server = new FakeServer(noise(10), { ranges: false });
    const huge = async (input: unknown, init?: RequestInit) => {
      const response = await server.fetch(input, init);
      response.headers.set('Content-Length', String(2 ** 30));
      return response;
    };
    const opening = HttpSource.open(URL_, undefined, { fetch: huge } as never);
    await expect(opening).rejects.toMatchObject({ code: 'no_ranges' });
  });

  it('does not vouch for damaged bytes', async () => {
    const server = new FakeServer(noise(SIZE), { ranges: false });
    const cache = new FakeCache();
    const pieces = piecesOf(server.bytes);
    server.bytes = server.bytes.slice();
    server.bytes[SIZE - 1]! ^= 1;
    const source = await openModel(server, cache);
    await expect(source.keep(pieces)).rejects.toMatchObject({ code: 'bad_checksum' });
    expect(cache.complete).toBe(false);
    expect(cache.verified.covers(SIZE - 1, 1)).toBe(false);
  });
});
