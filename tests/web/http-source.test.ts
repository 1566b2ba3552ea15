import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { crc32 } from '../../web/src/sources/crc32.js';
import { HttpSource } from '../../web/src/sources/http-source.js';
import { FakeCache, PIECE, SIZE, TABLES, URL_, open, openModel, piecesOf, read } from './fake-cache.js';
import { FakeServer, noise, same } from './fake-server.js';

/** Bytes that were checked. */
let checked = 0;
vi.mock('../../web/src/sources/crc32.js', async (original) => {
  const real = await original<{ crc32: typeof crc32 }>();
  const counted: typeof crc32 = (bytes, crc) => {
    checked += bytes.length;
    return real.crc32(bytes, crc);
  };
  return { crc32: counted };
});

describe('with a cache', () => {
  it('fetches everything once and says so', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
    expect(cache.complete).toBe(true);
    // The first request's 64 KiB are asked for again by the tables' one read that goes beyond them.
    expect(source.stats()).toMatchObject({ cacheState: 'complete', cachedBytes: SIZE, loaded: SIZE });
    expect(source.stats().network).toBeLessThanOrEqual(SIZE + 2 * 64 * 1024);
  });

  it("serves the engine's reads at once and does not fetch them twice", async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 2000 });
    const source = await openModel(server, new FakeCache());
    const pieces = piecesOf(server.bytes);
    const kept = source.keep(pieces);
    const last = pieces.at(-1)!;
    expect(same(await read(source, last.offset, last.size, last.crc), server.bytes.subarray(last.offset))).toBe(true);
    // Under way in the background:
    const second = pieces[1]!;
    await read(source, second.offset, second.size, second.crc);
    await kept;
    const fetched = new Uint8Array(SIZE);
    for (const [begin, end] of server.spans.slice(1)) for (let i = begin; i < end; i++) fetched[i]!++;
    expect(fetched.some((times) => times > 1)).toBe(false);
  });

  it('opens without the server once it is complete', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await (await openModel(server, cache)).keep(piecesOf(server.bytes));
    server.fault = () => ({ kind: 'refuse' });
    const source = await open(server, cache);
    expect(source.size).toBe(SIZE);
    const { offset, size, crc } = piecesOf(server.bytes)[7]!;
    const got = await read(source, offset, size, crc);
    expect(same(got, server.bytes.subarray(offset, offset + size))).toBe(true);
    expect(source.stats()).toMatchObject({ network: 0, cache: PIECE });
    server.fault = () => ({ kind: 'status', status: 503 });
    await open(server, cache);
    for (const status of [401, 403, 404]) {
      server.fault = () => ({ kind: 'status', status });
      await expect(open(server, cache)).rejects.toMatchObject({ code: 'http_status', status });
    }
  });

  it('asks no server while the browser is offline, once it is complete', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await (await openModel(server, cache)).keep(piecesOf(server.bytes));
    const asked = server.asked.length;
    vi.stubGlobal('navigator', { onLine: false });
    try {
      expect((await open(server, cache)).size).toBe(SIZE);
    } finally {
      vi.unstubAllGlobals();
    }
    expect(server.asked).toHaveLength(asked);
  });

  it('opens without a server that does not answer in time', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await (await openModel(server, cache)).keep(piecesOf(server.bytes));
    const asked = server.asked.length;
    server.fault = () => ({ kind: 'silent' });
    vi.useFakeTimers();
    try {
      const opening = open(server, cache);
      await vi.advanceTimersByTimeAsync(3000);
      expect((await opening).stats()).toMatchObject({ cacheState: 'complete', network: 0 });
    } finally {
      vi.useRealTimers();
    }
    expect(server.asked.length).toBe(asked + 1);
  });

  it('is read from the network where its handle has failed', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    await source.keep(piecesOf(server.bytes));
    cache.read = () => {
      throw new DOMException('closed', 'InvalidStateError');
    };
    const { offset, size, crc } = piecesOf(server.bytes)[7]!;
    expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
  });

  it('does not open without the server while it is not complete', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await openModel(server, cache);
    server.fault = () => ({ kind: 'refuse' });
    await expect(open(server, cache)).rejects.toMatchObject({ code: 'network_error' });
  });

  it('asks a reachable server whether the file is the same, without its bytes', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await (await openModel(server, cache)).keep(piecesOf(server.bytes));
    expect((await open(server, cache)).stats().network).toBe(0);
    server.etag = '"two"';
    server.bytes = noise(SIZE, 2);
    const source = await openModel(server, cache);
    expect(cache.identity!.validator).toBe('"two"');
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
  });

  it('goes on where an ended download stopped', async () => {
    const server = new FakeServer(noise(SIZE), { chunk: 2000 });
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    const kept = source.keep(piecesOf(server.bytes)).catch(() => 'ended');
    while (cache.verified.total < SIZE / 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await source.close();
    expect(await kept).toBe('ended');
    const have = cache.verified.total;
    expect(have).toBeLessThan(SIZE);
    cache.writable = true;
    const again = await openModel(server, cache);
    await again.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
    expect(again.stats().network).toBe(64 * 1024 + SIZE - have);
  });

  it('finds a byte that rotted in the cache and fetches its piece again', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    await (await openModel(server, cache)).keep(piecesOf(server.bytes));
    const piece = piecesOf(server.bytes)[3]!;
    cache.bytes[piece.offset + 5]! ^= 4;
    const source = await open(server, cache);
    const right = server.bytes.slice(piece.offset, piece.offset + piece.size);
    expect(same(await read(source, piece.offset, piece.size, piece.crc), right)).toBe(true);
    expect(same(cache.bytes.slice(piece.offset, piece.offset + piece.size), right)).toBe(true);
    expect(source.stats().network).toBe(PIECE);
  });

  it('fetches a piece that came damaged once more, and never vouches for a damaged one', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    const before = server.asked.length;
    server.fault = (n) => (n === before ? { kind: 'flip' } : undefined);
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);

    const bad = new FakeCache();
    const other = await openModel(server, bad);
    const vouched = bad.verified.total;
    server.fault = () => ({ kind: 'flip' });
    await expect(other.keep(piecesOf(server.bytes))).rejects.toMatchObject({ code: 'bad_checksum', url: URL_ });
    expect(bad.verified.total).toBe(vouched);
  });

  it('goes on without when the browser has no more room', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    cache.quota = SIZE / 2;
    const source = await openModel(server, cache);
    await source.keep(piecesOf(server.bytes));
    expect(source.stats().cacheState).toBe('off');
    for (const { offset, size, crc } of piecesOf(server.bytes)) {
      expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
    }
  });

  it('tells that the file changed, and begins anew when told to', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    server.etag = '"two"';
    server.bytes = noise(SIZE + 100, 2);
    await expect(source.keep(piecesOf(server.bytes))).rejects.toMatchObject({ code: 'file_changed' });
    await source.restart();
    expect(source.size).toBe(SIZE + 100);
    await read(source, 0, TABLES);
    source.accepted();
    await source.keep(piecesOf(server.bytes));
    expect(same(cache.bytes, server.bytes)).toBe(true);
  });
});

describe('a file of very many pieces', () => {
  const SMALL = 100;
  /** Of all ArrayBuffers that were made since limitMemory(). */
  let taken = 0;

  /** Refuses memory beyond so many bytes, as a browser does. */
  function limitMemory(most: number): void {
    const Real = ArrayBuffer;
    taken = 0;
    vi.stubGlobal(
      'ArrayBuffer',
      class extends Real {
        constructor(size: number) {
          if ((taken += size) > most) throw new RangeError('Array buffer allocation failed');
          super(size);
        }
      },
    );
  }
  afterEach(() => vi.unstubAllGlobals());

  const smallPieces = (bytes: Uint8Array) =>
    Array.from({ length: (SIZE - TABLES) / SMALL }, (_, i) => {
      const offset = TABLES + i * SMALL;
      return { offset, size: SMALL, crc: crc32(bytes.subarray(offset, offset + SMALL)) };
    });

  it('is fetched into a block for each request, not for each piece', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    limitMemory(8 * 1024 * 1024);
    await source.keep(smallPieces(server.bytes));
    expect(taken).toBeLessThan(8 * 1024 * 1024);
    expect(cache.complete).toBe(true);
    expect(same(cache.bytes, server.bytes)).toBe(true);
  });

  it('is looked at as often for each piece as one of few', async () => {
    /** How often pieces of so many bytes are looked at, for each. */
    const looks = async (size: number) => {
      const server = new FakeServer(noise(SIZE));
      const source = await openModel(server, new FakeCache());
      let looked = 0;
      const pieces = Array.from({ length: (SIZE - TABLES) / size }, (_, i) => {
        const offset = TABLES + i * size;
        return {
          get offset() {
            looked++;
            return offset;
          },
          ...{ size, crc: crc32(server.bytes.subarray(offset, offset + size)) },
        };
      });
      await source.keep(pieces);
      return looked / pieces.length;
    };
    const [few, many] = [await looks(1000), await looks(SMALL)];
    expect(few).toBeLessThanOrEqual(25);
    expect(many).toBeLessThanOrEqual(few + 0.1);
  });

  it.each([1, 3])('ends in an error where there is no memory, with %i requests at once', async (parallel) => {
    const server = new FakeServer(noise(SIZE));
    const network = { fetch: server.fetch, retryDelay: 1, parallel };
    const source = await HttpSource.open(URL_, new FakeCache(), network as never);
    await read(source, 0, TABLES);
    source.accepted();
    // The one request is for the engine, so that what is kept is asked for when that has ended.
    const { offset, size, crc } = smallPieces(server.bytes)[9]!;
    const reading = read(source, offset, size, crc);
    limitMemory(0);
    await expect(source.keep(smallPieces(server.bytes))).rejects.toMatchObject({ code: 'out_of_memory' });
    await reading;
    vi.unstubAllGlobals();
    expect(await read(source, offset, size, crc)).toEqual(server.bytes.slice(offset, offset + size));
  });
});

describe('tables', () => {
  it('are in the cache, and vouched for once the engine accepts them', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await open(server, cache);
    const into = new Uint8Array(TABLES);
    await source.read({ offset: 0, into, crc: undefined });
    // What is then done with the engine's memory changes nothing.
    into.fill(0);
    expect(cache.verified.total).toBe(0);
    source.accepted();
    expect(cache.verified.covers(0, TABLES)).toBe(true);
    expect(same(cache.bytes.subarray(0, TABLES), server.bytes.subarray(0, TABLES))).toBe(true);
  });

  it('that the engine refuses are never vouched for', async () => {
    const cache = new FakeCache();
    const source = await open(new FakeServer(noise(SIZE)), cache);
    await read(source, 0, TABLES);
    source.rejected(0, TABLES);
    source.accepted();
    expect(cache.verified.total).toBe(0);
  });

  it('that nobody has accepted leave a model with all its pieces incomplete', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await open(server, cache);
    await read(source, 0, TABLES);
    await source.keep(piecesOf(server.bytes));
    expect(cache.verified.total).toBe(SIZE - TABLES);
    expect(cache.complete).toBe(false);
    source.accepted();
    await source.keep(piecesOf(server.bytes));
    expect(cache.complete).toBe(true);
  });
});

describe('a checksum', () => {
  const server = new FakeServer(noise(SIZE));
  const pieces = piecesOf(server.bytes);
  const WEIGHTS = SIZE - TABLES;
  let cache: FakeCache;

  /** Reads every piece as the engine does, and expects it to be right. */
  async function readAll(source: HttpSource): Promise<void> {
    for (const { offset, size, crc } of pieces) {
      expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
    }
  }

  beforeEach(async () => {
    cache = new FakeCache();
    server.fault = () => undefined;
  });

  it('is computed once for bytes that go through the cache to the engine, however often it reads them', async () => {
    const source = await openModel(server, cache);
    checked = 0;
    await source.keep(pieces);
    await readAll(source);
    await readAll(source);
    expect(checked).toBe(WEIGHTS);
  });

  it('is computed once for bytes that the engine asks for itself', async () => {
    const source = await openModel(server, cache);
    checked = 0;
    await readAll(source);
    await source.keep(pieces);
    await readAll(source);
    expect(checked).toBe(WEIGHTS);
  });

  it('is computed once for what an earlier session kept', async () => {
    await (await openModel(server, cache)).keep(pieces);
    const source = await open(server, cache);
    checked = 0;
    await readAll(source);
    await readAll(source);
    expect(checked).toBe(WEIGHTS);
  });

  it('is computed by who can do it faster, where that is told', async () => {
    await (await openModel(server, cache)).keep(pieces);
    cache.bytes[pieces[1]!.offset]! ^= 1;
    const source = await open(server, cache);
    checked = 0;
    let computed = 0;
    for (const { offset, size, crc } of pieces) {
      const into = new Uint8Array(size);
      const own = () => {
        computed++;
        return same(into, server.bytes.subarray(offset, offset + size)) ? crc : ~crc >>> 0;
      };
      await source.read({ offset, into, crc, crc32: own });
      expect(same(into, server.bytes.subarray(offset, offset + size))).toBe(true);
    }
    expect(checked).toBe(0);
    expect(computed).toBe(pieces.length + 1);
    expect(source.stats().network).toBe(PIECE);
  });

  it('is computed anew for bytes that another tab may change', async () => {
    await (await openModel(server, cache)).keep(pieces);
    cache.owned = cache.writable = false;
    const source = await open(server, cache);
    await readAll(source);
    // The other tab begins the file anew.
    cache.bytes.fill(0);
    await readAll(source);
    expect(source.stats().network).toBe(WEIGHTS);
  });

  it('is computed for every transfer, and bytes that stay wrong never reach the engine', async () => {
    const source = await openModel(server);
    await readAll(source);
    server.fault = () => ({ kind: 'flip' });
    const { offset, size, crc } = pieces[2]!;
    await expect(read(source, offset, size, crc)).rejects.toMatchObject({ code: 'bad_checksum' });
    const next = server.asked.length;
    server.fault = (n) => (n === next ? { kind: 'flip' } : undefined);
    await readAll(source);
  });
});

it('a source tells of tries that are made again, from the first request on', async () => {
  const told: string[] = [];
  const server = new FakeServer(noise(SIZE));
  server.fault = (n) => (n === 0 ? { kind: 'refuse' } : undefined);
  const network = { fetch: server.fetch, retryDelay: 1 };
  await HttpSource.open(URL_, undefined, network as never, (what) => told.push(what));
  expect(told).toEqual([expect.stringMatching(/^https:.* could not be read: Failed to fetch; .*try 2 of 6/)]);
});

describe('without a cache', () => {
  it('reads ranges as they are wanted, and only those', async () => {
    const server = new FakeServer(noise(SIZE));
    const source = await openModel(server);
    await source.keep(piecesOf(server.bytes));
    const piece = piecesOf(server.bytes)[9]!;
    expect(
      same(
        await read(source, piece.offset, piece.size, piece.crc),
        server.bytes.subarray(piece.offset, piece.offset + piece.size),
      ),
    ).toBe(true);
    expect(source.stats()).toMatchObject({ cacheState: 'off', cache: 0, loaded: TABLES + PIECE });
  });
});

describe('streamed without a cache', () => {
  /** A source, and what reads all its pieces in turn. */
  async function openStreamed(server: FakeServer) {
    const source = await openModel(server);
    const pieces = piecesOf(server.bytes).filter((_, i) => i % 4 !== 3);
    const pass = async () => {
      for (const { offset, size, crc } of pieces)
        expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
    };
    return { source, pass };
  }

  it('is read ahead in fewer requests', async () => {
    const server = new FakeServer(noise(SIZE));
    const { source, pass } = await openStreamed(server);
    await pass();
    const first = server.asked.length;
    await pass();
    await pass();
    const before = server.asked.length;
    await pass();
    expect(server.asked.length - before).toBeLessThan(first / 2);
    await source.close();
  });

  it('has nothing of the file as it was before it began again', async () => {
    const server = new FakeServer(noise(SIZE));
    const { source, pass } = await openStreamed(server);
    for (let i = 0; i < 3; i++) await pass();
    await read(source, TABLES, PIECE); // the next one is on its way
    const next = TABLES + PIECE;
    server.bytes = noise(SIZE, 2);
    await source.restart();
    expect(same(await read(source, next, PIECE), server.bytes.slice(next, next + PIECE))).toBe(true);
    await source.close();
  });

  it('has a damaged run fetched again', async () => {
    const server = new FakeServer(noise(SIZE));
    const { source, pass } = await openStreamed(server);
    for (let i = 0; i < 3; i++) await pass();
    const next = server.asked.length;
    server.fault = (n) => (n === next ? { kind: 'flip' } : undefined);
    await pass();
    expect(server.asked.length).toBeGreaterThan(next);
    await source.close();
  });

  it('ends with the error of a run, and not after as many tries again', async () => {
    const server = new FakeServer(noise(SIZE));
    const { source, pass } = await openStreamed(server);
    for (let i = 0; i < 3; i++) await pass();
    const before = server.asked.length;
    server.fault = () => ({ kind: 'status', status: 404 });
    await expect(pass()).rejects.toMatchObject({ code: 'http_status' });
    // Three runs at most are on their way.
    expect(server.asked.length - before).toBeLessThanOrEqual(4);
    server.fault = () => undefined;
    for (let i = 0; i < 2; i++) await pass();
    await source.close();
  });
});
