// The digest of a whole file: the bytes read for it, and its use in load().
import './fair-channel.js';

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import { openOptions } from '../../web/src/boundary.gen.js';
import { MiB } from '../../web/src/constants.js';
import { checkOptions } from '../../web/src/page/options.js';
import { fileDigest } from '../../web/src/worker/file-digest.js';
import { FakeCache, SIZE, openModel, piecesOf } from './fake-cache.js';
import { FakeSource, fakeEngine } from './fake-engine.js';
import { FakeServer, noise } from './fake-server.js';
import { modelOf } from './model-of.js';

const URL_ = 'https://example.org/model.qsf';

function digestOf(source: FakeSource): string {
  const bytes = Uint8Array.from({ length: source.size }, (_, i) => source.byteAt(i));
  return createHash('sha256').update(bytes).digest('hex');
}

function load(source: FakeSource, sha256: string) {
  const { engine, instance } = fakeEngine();
  const model = modelOf(
    {
      ...{ source: URL_, memory: MiB, open: checkOptions(openOptions, {}), kv: undefined, sha256, cache: true },
      ...{ cacheLimit: undefined, background: false, variant: undefined, threads: undefined, network: {} },
    },
    engine,
    source,
    { progress: () => {}, warning: () => {} },
  );
  return { instance, loading: model.load() };
}

describe('fileDigest()', () => {
  it.each([0, 1, 100_000, MiB, 4 * MiB, 5 * MiB + 1, 9 * MiB - 1])('is that of %i bytes', async (size) => {
    const source = new FakeSource();
    Object.assign(source, { size, mode: 'later' });
    expect(await fileDigest(source, fakeEngine().engine)).toBe(digestOf(source));
    const read = source.pieces.reduce((sum, { into }) => sum + into.length, 0);
    expect(read).toBe(size);
  });

  it('has at most four reads under way, and ends with the error of one', async () => {
    const source = new FakeSource();
    Object.assign(source, { size: 8 * MiB, mode: 'held' });
    const digest = fileDigest(source, fakeEngine().engine);
    expect(source.held).toBe(4);
    source.error = new Error('gone');
    source.release();
    await expect(digest).rejects.toThrow('gone');
    expect(source.pieces).toHaveLength(4);
  });
});

describe('load() with a digest', () => {
  it('opens that file, whose bytes are then vouched for', async () => {
    const source = new FakeSource();
    const { instance, loading } = load(source, digestOf(source));
    await loading;
    expect(source.pieces[0]).toMatchObject({ offset: 0, into: { length: source.size } });
    expect(source.calls.slice(0, 2)).toEqual(['accepted', 'accepted']);
    expect(instance.calls[0]).toBe(`open ${String(source.size)}`);
  });

  it('refuses another file before the engine sees a byte of it', async () => {
    const source = new FakeSource();
    const { instance, loading } = load(source, 'a'.repeat(64));
    const message = `has the SHA-256 ${digestOf(source)}, not ${'a'.repeat(64)}: it is another file`;
    await expect(loading).rejects.toMatchObject({
      code: 'bad_checksum',
      message: expect.stringContaining(message) as string,
      url: URL_,
    });
    expect(instance.calls).toEqual([]);
    expect(source.calls).toEqual([]);
  });

  it('reads a file anew whose cached bytes have another digest', async () => {
    const source = new FakeSource();
    const right = digestOf(source);
    source.fromCache = 100;
    const { byteAt } = source;
    source.byteAt = (offset) => byteAt(offset) ^ (offset === 3000 ? 1 : 0);
    source.onRestart = () => (source.byteAt = byteAt);
    await load(source, right).loading;
    expect(source.calls.slice(0, 2)).toEqual(['restart', 'accepted']);
  });

  it('fetches the bytes of a file that is kept once', async () => {
    const server = new FakeServer(noise(SIZE));
    const cache = new FakeCache();
    const source = await openModel(server, cache);
    const digest = await fileDigest(source, fakeEngine().engine);
    expect(digest).toBe(createHash('sha256').update(server.bytes).digest('hex'));
    source.accepted();
    const { network } = source.stats();
    await source.keep(piecesOf(server.bytes));
    expect(source.stats().network).toBe(network);
    expect(cache.complete).toBe(true);
  });
});
