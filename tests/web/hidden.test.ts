// What a server may see of a model that is kept, or is not.
import { beforeEach, describe, expect, it } from 'vitest';

import type { HttpSource } from '../../web/src/sources/http-source.js';
import type { Piece } from '../../web/src/sources/source.js';
import { FakeCache, SIZE, URL_, open, openModel, piecesOf, read } from './fake-cache.js';
import { FakeServer, noise, same } from './fake-server.js';

describe('a piece that is hidden', () => {
  const server = new FakeServer(noise(SIZE));
  const pieces = piecesOf(server.bytes);
  const [, piece, other] = pieces as [Piece, Piece, Piece];
  let cache: FakeCache;
  let source: HttpSource;

  beforeEach(async () => {
    cache = new FakeCache();
    await (await openModel(server, cache)).keep(pieces);
    source = await open(server, cache);
    source.hide([piece]);
  });

  it('is read from the cache', async () => {
    expect(source.isWatched).toBe(false);
    await read(source, piece.offset, piece.size, piece.crc);
    expect(source.stats().network).toBe(0);
  });

  it.each([true, false])(
    'is not asked of the server where it was lost, but when opened anew (own cache: %s)',
    async (own) => {
      cache.owned = own;
      for (const { offset } of [piece, other]) cache.bytes[offset]! ^= 1;
      const before = server.asked.length;
      const reading = read(source, piece.offset, piece.size, piece.crc);
      await expect(reading).rejects.toMatchObject({ code: 'file_changed', url: URL_ });
      await expect(read(source, piece.offset, piece.size, piece.crc)).rejects.toMatchObject({ code: 'file_changed' });
      expect(server.asked).toHaveLength(before);
      // What every pass reads tells nothing.
      await read(source, other.offset, other.size, other.crc);
      expect(server.asked).toHaveLength(before + 1);
      cache.owned = true;
      const again = await openModel(server, cache);
      expect(again.isWatched).toBe(true);
      await again.keep(pieces);
      expect(again.isWatched).toBe(false);
      expect(same(cache.bytes, server.bytes)).toBe(true);
    },
  );

  it('that the cache cannot read is lost too', async () => {
    cache.read = () => Promise.reject(new Error('the file is short')) as never;
    const before = server.asked.length;
    await expect(read(source, piece.offset, piece.size, piece.crc)).rejects.toMatchObject({ code: 'file_changed' });
    expect(server.asked).toHaveLength(before);
    expect(cache.verified.covers(piece.offset, piece.size)).toBe(false);
  });
});

describe('a source', () => {
  it('is watched unless a cache or one response has everything', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    expect(await open(server)).toMatchObject({ isWatched: true, keeps: false });
    const source = await openModel(server, cache);
    expect(source).toMatchObject({ isWatched: true, keeps: true });
    await source.keep(piecesOf(server.bytes));
    expect(source).toMatchObject({ isWatched: false, keeps: true });
    const small = new FakeCache();
    small.quota = SIZE / 2;
    const refused = await openModel(server, small);
    await refused.keep(piecesOf(server.bytes));
    expect(refused).toMatchObject({ isWatched: true, keeps: false });
    await refused.close();
    expect(await open(new FakeServer(noise(SIZE), { ranges: false }))).toMatchObject({ isWatched: false });
  });
});
