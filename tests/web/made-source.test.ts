// Models of other kinds, made as they are read, and kept as the files that they are made to.
import { beforeEach, describe, expect, it } from 'vitest';

import { errorNumbers } from '../../web/src/errors.gen.js';
import { HttpSource } from '../../web/src/sources/http-source.js';
import { KeptMadeSource } from '../../web/src/sources/kept-made.js';
import { BytesSource } from '../../web/src/sources/local.js';
import { MadeSource } from '../../web/src/sources/made-source.js';
import type { Making } from '../../web/src/sources/made-source.js';
import { RangeSet } from '../../web/src/sources/ranges.js';
import type { ByteSource } from '../../web/src/sources/source.js';
import { FakeCache, URL_, open } from './fake-cache.js';
import {
  FRONT,
  FakeMakers,
  MADE_FRONT,
  MADE_SIZE,
  SEGMENT,
  SEGMENTS,
  madeFile,
  modelFile,
  segments,
} from './fake-maker.js';
import { FakeServer, same } from './fake-server.js';

const model = modelFile();
const made = madeFile(model);
/** The checksums, which only the finished front has. */
const CHECKSUMS = { begin: 100, end: 100 + 4 * SEGMENTS };

let makers: FakeMakers;
let warnings: string[];
let asked: string[];

beforeEach(() => {
  makers = new FakeMakers();
  warnings = [];
  asked = [];
});

function making(source: ByteSource, others: Record<string, ByteSource> = {}): Making {
  return {
    first: { name: 'model.gguf', source },
    open: async (name) => {
      asked.push(name);
      return others[name];
    },
    start: makers.start,
    warn: (sentence) => warnings.push(sentence),
  };
}

/** Reads with the checksum that tables have in place of one that is not known, or without any. */
async function bytesOf(source: ByteSource, offset: number, size: number, crc?: 0): Promise<Uint8Array> {
  const into = new Uint8Array(size).fill(99);
  await source.read({ offset, into, crc });
  return into;
}

describe('a made source', () => {
  it('has every range of the file that is made', async () => {
    const source = await MadeSource.open(making(new BytesSource(model)));
    expect(source).toMatchObject({ size: MADE_SIZE, makes: true });
    for (const { offset, size } of segments)
      expect(same(await bytesOf(source, offset, size, 0), made.subarray(offset, offset + size))).toBe(true);
    const end = segments[2]!.offset + SEGMENT;
    for (const [begin, stop] of [
      [CHECKSUMS.end, MADE_FRONT],
      [CHECKSUMS.end, MADE_FRONT + 10],
      [segments[3]!.offset + 7, segments[3]!.offset + 1007],
      [end - 3, end + 40],
      [end + 3, end + 9],
      [MADE_FRONT + 5, MADE_SIZE],
    ] as const)
      expect(same(await bytesOf(source, begin, stop - begin), made.subarray(begin, stop)), `${begin}`).toBe(true);
    await expect(bytesOf(source, MADE_SIZE - 3, 4)).rejects.toMatchObject({ code: 'truncated' });
  });

  it('reads the front as it grows, and single numbers all at once', async () => {
    const server = new FakeServer(model);
    await MadeSource.open(making(await open(server)));
    // The front in 50, 50 and 100 KB, the scales, and the whole; then a maker for segments, which has the bytes already.
    expect(makers.calls).toEqual([...Array.from({ length: 5 }, () => 'plan'), 'restore']);
    expect(makers.started).toBe(2);
    const before = server.spans.filter(([, end]) => end <= FRONT).reduce((sum, [begin, end]) => sum + end - begin, 0);
    expect(before).toBeLessThan(FRONT + 70_000);
    expect(warnings).toEqual(['the model is odd.']);
  });

  it('tells each maker the type of all matrices', async () => {
    const source = await MadeSource.open({ ...making(new BytesSource(model)), quantType: 'q4_0' });
    source.rest();
    await bytesOf(source, segments[0]!.offset, SEGMENT);
    await MadeSource.open(making(new BytesSource(model)));
    expect(makers.types).toEqual(['q4_0', 'q4_0', 'q4_0', '', '']);
  });

  it('requests the runs of a segment together, and forgets them', async () => {
    const server = new FakeServer(model);
    const source = await MadeSource.open(making(await open(server)));
    const before = server.asked.length;
    const both = await Promise.all([4, 5].map((i) => bytesOf(source, segments[i]!.offset, SEGMENT)));
    both.forEach((bytes, i) =>
      expect(same(bytes, made.subarray(segments[4 + i]!.offset).subarray(0, SEGMENT))).toBe(true),
    );
    expect(makers.calls.filter((call) => call.startsWith('make'))).toEqual(['make 4', 'make 5']);
    expect(server.asked).toHaveLength(before + 2);
    await bytesOf(source, segments[4]!.offset, SEGMENT);
    expect(server.asked).toHaveLength(before + 3);
  });

  it('finds other files by name', async () => {
    makers.other = 'second.gguf';
    await MadeSource.open(making(new BytesSource(model), { 'second.gguf': new BytesSource(new Uint8Array(5)) }));
    expect(makers.sizes).toEqual([model.length, 5]);
    await MadeSource.open(making(new BytesSource(model)));
    expect(makers.sizes).toEqual([model.length]);
    expect(asked).toEqual(['second.gguf', 'second.gguf']);
  });

  it('asks for no file that only zeros in place of bytes made it look for', async () => {
    makers.recognizes = true;
    await MadeSource.open(making(new BytesSource(model)));
    expect(asked).toEqual([]);
  });

  it('gives the sentence of a model that cannot be made, and closes', async () => {
    makers.refuses = { code: errorNumbers.unsupported, sentence: 'the architecture "x" is not known' };
    const bytes = new BytesSource(model);
    let closed = 0;
    bytes.close = async () => void closed++;
    await expect(MadeSource.open(making(bytes))).rejects.toMatchObject({
      code: 'unsupported',
      message: 'the architecture "x" is not known',
    });
    expect(closed).toBe(1);
  });

  it('reports memory that the module does not get', async () => {
    makers.traps = true;
    await expect(MadeSource.open(making(new BytesSource(model)))).rejects.toMatchObject({ code: 'out_of_memory' });
  });

  it('drops the module at rest, and starts it again', async () => {
    const source = await MadeSource.open(making(new BytesSource(model)));
    expect(source.stats().made).toEqual({ kind: 'GGUF', bytes: (1 << 20) + MADE_FRONT });
    source.rest();
    expect(source.stats().made).toEqual({ kind: 'GGUF', bytes: MADE_FRONT });
    const both = await Promise.all([1, 2].map((i) => bytesOf(source, segments[i]!.offset, SEGMENT)));
    both.forEach((bytes, i) =>
      expect(same(bytes, made.subarray(segments[1 + i]!.offset).subarray(0, SEGMENT))).toBe(true),
    );
    expect(makers.started).toBe(3);
  });

  it('shows how much of the model is there', async () => {
    const server = new FakeServer(model);
    const source = await MadeSource.open(making(await open(server)));
    let grown = 0;
    source.onLoaded = () => grown++;
    const { loaded } = source.stats();
    for (const { offset, size } of segments) await bytesOf(source, offset, size);
    expect(grown).toBeGreaterThan(0);
    expect(source.stats().loaded).toBeGreaterThan(loaded);
    expect(source.stats().loaded).toBeLessThanOrEqual(MADE_SIZE);
  });

  it('does not ask a server for hidden segments', async () => {
    const server = new FakeServer(model);
    const source = await MadeSource.open(making(await open(server)));
    source.hide([segments[6]!]);
    await expect(bytesOf(source, segments[6]!.offset, SEGMENT)).rejects.toMatchObject({ code: 'file_changed' });
    await bytesOf(source, segments[7]!.offset, SEGMENT);
  });
});

/** Sums the bytes that a server was asked for, and those of them that it was asked for before. */
function askedFor(server: FakeServer): { all: number; again: number } {
  const once = new RangeSet();
  let all = 0;
  for (const [begin, end] of server.spans) {
    once.add(begin, end - begin);
    all += end - begin;
  }
  return { all, again: all - once.total };
}

describe('a made source that begins early', () => {
  const large = new Uint8Array(8 * model.length);
  large.set(model);
  const early = async (server: FakeServer) => MadeSource.open({ ...making(await open(server)), early: true });

  it('has weights by the time that the front is read, in one request, and asks for no byte twice', async () => {
    const server = new FakeServer(large);
    const source = await early(server);
    const [head, weights] = server.spans;
    expect(weights).toEqual([head![1], head![1] + large.length / 8]);
    await Promise.all(segments.slice(0, 12).map(({ offset, size }) => bytesOf(source, offset, size)));
    for (const { offset, size } of segments.slice(12))
      expect(same(await bytesOf(source, offset, size), made.subarray(offset, offset + size))).toBe(true);
    expect(askedFor(server).again).toBe(0);
  });

  it('costs a model that is refused an eighth of its file', async () => {
    const server = new FakeServer(large);
    makers.refuses = { code: errorNumbers.unsupported, sentence: 'the architecture "x" is not known' };
    await expect(early(server)).rejects.toMatchObject({ code: 'unsupported' });
    expect(askedFor(server).all).toBeLessThanOrEqual(65_536 + large.length / 8 + SEGMENTS * 64);
    const whole = new FakeServer(new Uint8Array(128 << 20));
    whole.bytes.set(model);
    await expect(early(whole)).rejects.toMatchObject({ code: 'unsupported' });
    expect(askedFor(whole).all).toBeLessThanOrEqual(65_536 + (8 << 20) + SEGMENTS * 64);
  });

  it('asks again for what did not come', async () => {
    const server = new FakeServer(large);
    server.fault = (n) => (n === 1 ? { kind: 'status', status: 404 } : undefined);
    const source = await early(server);
    for (const { offset, size } of segments)
      expect(same(await bytesOf(source, offset, size), made.subarray(offset, offset + size))).toBe(true);
  });

  it('fetches nothing early for a call that may need no weights', async () => {
    const server = new FakeServer(large);
    await MadeSource.open(making(await open(server)));
    expect(askedFor(server).all).toBeLessThan(FRONT + 150_000);
  });
});

describe('a made source that is kept', () => {
  const server = () => new FakeServer(model);

  /** Opens as the worker does: the cache belongs to the file that is made. */
  async function openKept(at: FakeServer, cache: FakeCache): Promise<ByteSource> {
    const http = await open(at, cache);
    if (!http.head) return http;
    const kept = http.detach()!;
    return new KeptMadeSource(await MadeSource.open(making(http)), kept.cache, kept.identity);
  }

  it('is the .qsf file, and is opened without a maker and its bytes', async () => {
    const at = server();
    const cache = new FakeCache();
    const source = await openKept(at, cache);
    await source.keep(segments);
    expect(same(cache.bytes, made)).toBe(true);
    expect(cache.complete).toBe(true);
    expect(cache.identity).toEqual({ url: URL_, validator: '"one"', size: MADE_SIZE, of: model.length });
    expect(source.stats()).toMatchObject({
      cacheState: 'complete',
      cachedBytes: MADE_SIZE,
      made: { bytes: MADE_FRONT },
    });
    expect(source.isWatched).toBe(false);
    const started = makers.started;
    expect(
      same(
        await bytesOf(source, segments[9]!.offset, SEGMENT),
        made.subarray(segments[9]!.offset).subarray(0, SEGMENT),
      ),
    ).toBe(true);
    const again = await openKept(at, cache);
    expect(again).toBeInstanceOf(HttpSource);
    expect(again.size).toBe(MADE_SIZE);
    expect(same(await bytesOf(again, 0, MADE_FRONT), made.subarray(0, MADE_FRONT))).toBe(true);
    for (const { offset } of segments)
      expect(same(await bytesOf(again, offset, SEGMENT), made.subarray(offset, offset + SEGMENT))).toBe(true);
    expect(makers.started).toBe(started);
    expect(again.stats().network).toBe(0);
  });

  it('requests neighbouring segments together, up to two megabytes', async () => {
    const at = server();
    const source = await openKept(at, new FakeCache());
    const before = at.asked.length;
    await source.keep(segments);
    expect(at.asked.length - before).toBe(1);
    const large = Array.from({ length: 8 }, (_, i) => ({
      offset: MADE_FRONT + i,
      size: 900_000,
      crc: undefined,
    }));
    const wanted: number[] = [];
    const made = await MadeSource.open(making(await open(server())));
    made.fetch = async (pieces) => {
      wanted.push(pieces.length);
      throw new Error('enough');
    };
    const cache = new FakeCache();
    const other = new KeptMadeSource(made, cache, () => ({ url: URL_, validator: '"one"', size: model.length }));
    await expect(other.keep([{ offset: 0, size: 3_000_000, crc: undefined }, ...large])).rejects.toThrow('enough');
    expect(wanted).toEqual([1, 2]);
  });

  it('goes on with what an earlier visit kept', async () => {
    const at = server();
    const cache = new FakeCache();
    const first = await openKept(at, cache);
    for (const { offset } of segments.slice(0, 12)) await bytesOf(first, offset, SEGMENT);
    expect(cache.verified.total).toBe(12 * SEGMENT);
    makers.calls.length = 0;
    const second = await openKept(at, cache);
    await second.keep(segments);
    expect(makers.calls.filter((call) => call.startsWith('make'))).toHaveLength(SEGMENTS - 12);
    expect(same(cache.bytes, made)).toBe(true);
    expect(cache.complete).toBe(true);
  });

  it('makes a segment once that the engine wants while it is kept', async () => {
    const cache = new FakeCache();
    const source = await openKept(server(), cache);
    const keeping = source.keep(segments);
    const bytes = await bytesOf(source, segments[0]!.offset, SEGMENT);
    await keeping;
    expect(same(bytes, made.subarray(MADE_FRONT, MADE_FRONT + SEGMENT))).toBe(true);
    expect(makers.calls.filter((call) => call === 'make 0')).toHaveLength(1);
  });

  it('asks for no byte of a segment that the engine reads while it is kept', async () => {
    const at = server();
    const source = await openKept(at, new FakeCache());
    const first = askedFor(at).again;
    const reading = Promise.all([2, 3, 9].map((i) => bytesOf(source, segments[i]!.offset, SEGMENT)));
    await Promise.resolve();
    await source.keep(segments);
    await reading;
    expect(askedFor(at).again - first).toBeLessThan(1000); // small ones between them
  });

  it('ends keeping when the browser takes no more', async () => {
    const cache = new FakeCache();
    cache.quota = 5 * SEGMENT;
    const source = await openKept(server(), cache);
    await source.keep(segments);
    expect(cache.complete).toBe(false);
    expect(source.keeps).toBe(false);
    for (const { offset } of segments)
      expect(same(await bytesOf(source, offset, SEGMENT), made.subarray(offset, offset + SEGMENT))).toBe(true);
  });

  it('is made anew of another version of the file', async () => {
    const at = server();
    const cache = new FakeCache();
    await (await openKept(at, cache)).keep(segments);
    at.etag = '"two"';
    const source = await openKept(at, cache);
    expect(source).toBeInstanceOf(KeptMadeSource);
    expect(cache.complete).toBe(false);
    await source.keep(segments);
    expect(cache.identity?.validator).toBe('"two"');
    expect(same(cache.bytes, made)).toBe(true);
  });

  /** The server with another version of the file, from the request on that `when` finds. */
  function changing(when: (n: number) => boolean) {
    const at = server();
    const modes: (RequestCache | undefined)[] = [];
    const other = model.map((byte, i) => (i < FRONT ? byte : byte + 5));
    at.fault = (n) => {
      if (when(n)) [at.bytes, at.etag] = [other, '"two"'];
      return undefined;
    };
    const answer = at.fetch;
    const fetch = (input: unknown, init?: RequestInit) => {
      modes.push(init?.cache);
      return answer(input, init);
    };
    return { at: Object.assign(at, { fetch }), other: madeFile(other), modes };
  }
  const TWO = { url: URL_, validator: '"two"', size: MADE_SIZE, of: model.length };

  it('is the version that it was made of, if the file changes while it is fetched', async () => {
    let isLate = false;
    const { at, other, modes } = changing(() => isLate);
    const cache = new FakeCache();
    const source = await openKept(at, cache);
    await bytesOf(source, segments[0]!.offset, SEGMENT);
    isLate = true;
    await expect(source.keep(segments)).rejects.toMatchObject({ code: 'file_changed' });
    await source.restart();
    await source.keep(segments);
    expect(cache.identity).toEqual(TWO);
    expect(same(cache.bytes, other)).toBe(true);
    expect(new Set(modes)).toEqual(new Set(['no-store']));
  });

  it('is the version that it was made of, if the file changes while its front is read', async () => {
    const { at, other } = changing((n) => n === 1);
    const cache = new FakeCache();
    const source = await openKept(at, cache);
    await source.keep(segments);
    expect(cache.identity).toEqual(TWO);
    expect(same(cache.bytes, other)).toBe(true);
  });

  it('never asks the server for bytes that the kept file has lost, because it has others there', async () => {
    const at = server();
    const cache = new FakeCache();
    await (await openKept(at, cache)).keep(segments);
    const kept = await openKept(at, cache);
    cache.drop(segments[3]!.offset, SEGMENT);
    const before = at.asked.length;
    await expect(bytesOf(kept, segments[3]!.offset, SEGMENT)).rejects.toMatchObject({ code: 'file_changed' });
    expect(at.asked).toHaveLength(before);
    await (await openKept(at, cache)).keep(segments);
    expect(same(cache.bytes, made)).toBe(true);
  });

  it('keeps a stream of the whole file as it is', async () => {
    const at = new FakeServer(model, { ranges: false });
    const cache = new FakeCache();
    const http = await open(at, cache);
    const source = await MadeSource.open(making(http));
    await source.keep(segments);
    expect(same(cache.bytes, model)).toBe(true);
    for (const { offset } of segments)
      expect(same(await bytesOf(source, offset, SEGMENT), made.subarray(offset, offset + SEGMENT))).toBe(true);
    expect(at.asked).toHaveLength(1);
  });
});
