// A model that is kept while the disk does its worst: what is left must be read right, and be mended, each time.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { MiB } from '../../web/src/constants.js';
import { HttpSource } from '../../web/src/sources/http-source.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import { PIECE, SIZE, TABLES, URL_, piecesOf } from './fake-cache.js';
import { FakeServer, noise, same } from './fake-server.js';
import { crash, installFakeOpfs, journalFile, modelFile } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';

let top: FakeFolder;
let server: FakeServer;
beforeEach(() => {
  top = installFakeOpfs(Date.now);
  server = new FakeServer(noise(SIZE), { chunk: SIZE });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const pieces = () => piecesOf(server.bytes);

/** Reads bytes as the engine does; throws those that are wrong. */
async function read(source: HttpSource, offset: number, size: number, crc?: number): Promise<void> {
  const into = new Uint8Array(size);
  await source.read({ offset, into, crc });
  if (!same(into, server.bytes.subarray(offset, offset + size))) throw new Error(`wrong bytes at ${offset}`);
}

/** Opens the model as the worker does: tables that are wrong have it begun anew, once. */
async function open(): Promise<HttpSource> {
  const source = await HttpSource.open(URL_, await openCache(URL_), { fetch: server.fetch, retryDelay: 1 } as never);
  const tables = async () => {
    await read(source, 0, 128);
    await read(source, 128, TABLES - 128);
    source.accepted();
  };
  try {
    await tables();
  } catch {
    source.rejected(128, TABLES - 128);
    await source.restart();
    await tables();
  }
  return source;
}

/** Opens the model, keeps all of it and reads it. */
async function use(): Promise<HttpSource> {
  const source = await open();
  await source.keep(pieces());
  for (const { offset, size, crc } of pieces()) await read(source, offset, size, crc);
  return source;
}

/** Uses what is left twice, and then without the server. */
async function mend(): Promise<void> {
  await (await use()).close();
  await (await use()).close();
  expect(same(modelFile(top).bytes, server.bytes)).toBe(true);
  const { bytes } = server;
  const reached = server.asked.length;
  vi.stubGlobal('navigator', Object.assign(navigator, { onLine: false }));
  const source = await use();
  expect(source.stats()).toMatchObject({ network: 0, cacheState: 'complete' });
  expect(server.asked.length).toBe(reached);
  expect(server.bytes).toBe(bytes);
  await source.close();
  Object.assign(navigator, { onLine: true });
}

/** What lasts of changes that were not flushed; another at each call with the same seed's `some`. */
const LASTING: Record<string, (seed: number) => (file: string, nth: number) => boolean> = {
  nothing: () => () => false,
  all: () => () => true,
  'the journal alone': () => (file) => file === 'journal',
  'the model alone': () => (file) => file === 'model',
  some: (seed) => {
    const random = noise(1000, seed + 1);
    return (file, nth) => random[(nth + (file === 'model' ? 500 : 0)) % 1000]! % 2 === 0;
  },
};

describe('what a crash leaves', () => {
  it.each(Object.keys(LASTING))('is read right and mended, where %s of what was not flushed lasts', async (lasting) => {
    top.disk.written = PIECE;
    await (await use()).close();
    const changes = top.disk.changes;
    expect(changes).toBeGreaterThan(100);
    for (let killed = 0; killed < changes; killed += 13) {
      top = installFakeOpfs(Date.now);
      top.disk.written = PIECE;
      top.disk.killedAt = killed;
      const source = await use();
      crash(top, LASTING[lasting]!(killed));
      await source.close();
      await mend();
    }
  });

  it.each(Object.keys(LASTING))('of a file that was replaced is one of both, where %s lasts', async (lasting) => {
    const old = server;
    const changed = Object.assign(new FakeServer(noise(SIZE, 2), { chunk: SIZE }), { etag: '"two"' });
    await (await use()).close();
    const before = top.disk.changes;
    server = changed;
    await (await use()).close();
    const changes = top.disk.changes - before;
    for (let killed = 0; killed < Math.min(changes, 12); killed += 2) {
      top = installFakeOpfs(Date.now);
      server = old;
      await (await use()).close();
      top.disk.killedAt = top.disk.changes + killed;
      server = changed;
      const source = await use();
      crash(top, LASTING[lasting]!(killed));
      await source.close();
      await mend();
    }
  });

  it('is complete only with all bytes, since these are flushed before the journal says so', async () => {
    top.disk.written = PIECE;
    const source = await use();
    crash(top, (file) => file === 'journal');
    await source.close();
    expect(same(modelFile(top).bytes, server.bytes)).toBe(true);
    expect((await openCache(URL_))!.complete).toBe(true);
  });
});

it('what was written lasts a crash but for the last few megabytes', async () => {
  const size = 20 * MiB;
  const kept = (await openCache(URL_))!;
  kept.reset({ url: URL_, validator: '"1"', size });
  const bytes = noise(MiB);
  for (let offset = 0; offset < size; offset += MiB) {
    kept.write(offset, bytes);
    kept.mark(offset, MiB);
  }
  crash(top, () => false);
  await kept.close();
  const { verified } = (await openCache(URL_))!;
  expect([...verified]).toEqual([[0, 16 * MiB]]);
  for (let offset = 0; offset < 16 * MiB; offset += MiB)
    expect(same(modelFile(top).bytes.subarray(offset, offset + MiB), bytes)).toBe(true);
});

describe('a cache that is begun anew', () => {
  it.each(Object.keys(LASTING))('vouches for nothing that a crash has taken, where %s lasts', async (lasting) => {
    await (await use()).close();
    const kept = (await openCache(URL_))!;
    kept.reset({ url: URL_, validator: '"two"', size: SIZE });
    crash(top, LASTING[lasting]!(1));
    await kept.close();
    const { verified, complete } = (await openCache(URL_))!;
    expect([[...verified], complete]).toEqual([[], false]);
  });
});

describe('a file of the cache', () => {
  it.each(['is short', 'cannot be read'] as const)('that %s is fetched once more, not with each read', async (how) => {
    await (await use()).close();
    const last = pieces().at(-1)!;
    if (how === 'is short') {
      const handle = await modelFile(top).createSyncAccessHandle({ mode: 'readwrite' });
      handle.truncate(last.offset + 5);
      handle.close();
    }
    const source = await open();
    if (how === 'cannot be read') modelFile(top).broken = 1;
    for (let i = 0; i < 3; i++) {
      await read(source, last.offset, last.size, last.crc);
      modelFile(top).broken = 0;
    }
    expect(source.stats().network).toBe(last.size);
    await source.close();
    await mend();
  });

  it('that is read in parts is read whole, the journal too', async () => {
    await (await use()).close();
    top.disk.read = 499;
    const journal = journalFile(top).bytes.length;
    expect(journal).toBeGreaterThan(499);
    const reached = server.asked.length;
    const source = await use();
    expect(source.stats().network).toBe(0);
    // One asks whether the model is still the same.
    expect(server.asked.slice(reached).map(({ method }) => method)).toEqual(['HEAD']);
    await source.close();
    expect(journalFile(top).bytes.length).toBe(journal);
  });

  it('that cannot be cut where its journal is torn lets go of all, so that others can have it', async () => {
    await (await use()).close();
    const handle = await journalFile(top).createSyncAccessHandle({ mode: 'readwrite' });
    handle.write(new TextEncoder().encode('have 1'), { at: handle.getSize() });
    handle.close();
    top.disk.killedAt = top.disk.changes;
    expect(await openCache(URL_)).toBeUndefined();
    expect([modelFile(top).open, journalFile(top).open]).toEqual([0, 0]);
    top.disk.killedAt = Infinity;
    await mend();
  });
});

describe('room that ends', () => {
  it.each(['throws', 'stores a part'] as const)('at any byte, where a write %s', async (full) => {
    for (let quota = 0; quota < SIZE + 5000; quota += 133_333) {
      top = installFakeOpfs(Date.now);
      Object.assign(top.disk, { quota, full });
      const source = await use();
      await source.close();
      // What has found room is kept, and is right.
      const again = await use();
      for (const { offset, size, crc } of pieces()) await read(again, offset, size, crc);
      await again.close();
      top.disk.quota = Infinity;
      await mend();
    }
  });
});
