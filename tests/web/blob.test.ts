import { describe, expect, it } from 'vitest';

import { BlobSource, BlockReader } from '../../web/src/sources/blob.js';
import { BytesSource } from '../../web/src/sources/local.js';
import { noise, same } from './fake-server.js';

const MiB = 1024 * 1024;

/** A blob that counts what is asked of it, and fails as one whose file has changed does. */
class CountedBlob {
  readonly size: number;
  /** Bytes of each slice. */
  readonly slices: number[] = [];
  /** Bytes on their way, and the most that were. */
  #underWay = 0;
  mostUnderWay = 0;
  fault: 'short' | 'gone' | undefined;
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
    this.size = bytes.length;
  }

  slice(begin: number, end: number) {
    const arrayBuffer = async (): Promise<ArrayBuffer> => {
      const got = this.#bytes.slice(begin, this.fault === 'short' ? Math.max(begin, end - 1) : end);
      this.slices.push(got.length);
      this.#underWay += got.length;
      this.mostUnderWay = Math.max(this.mostUnderWay, this.#underWay);
      await new Promise((resolve) => setImmediate(resolve));
      this.#underWay -= got.length;
      if (this.fault === 'gone') throw new DOMException('The file was changed.', 'NotReadableError');
      return got.buffer;
    };
    return { arrayBuffer };
  }
}

describe('BlockReader', () => {
  it('gives any range, within blocks and across them', async () => {
    const bytes = noise(5 * MiB + 123);
    const reader = new BlockReader(new Blob([bytes]));
    for (const [offset, size] of [
      [0, 128],
      [MiB - 1, 2],
      [MiB / 2, 3 * MiB],
      [5 * MiB, 123],
      [0, bytes.length],
      [2 * MiB, MiB],
      [17, 0],
    ] as const) {
      const into = new Uint8Array(size);
      await reader.read(offset, into);
      expect(same(into, bytes.subarray(offset, offset + size))).toBe(true);
    }
  });

  it.each([1, 20])('reads a file in order with one slice per block, %i reads at a time', async (underWay) => {
    const bytes = noise(8 * MiB);
    const blob = new CountedBlob(bytes);
    const reader = new BlockReader(blob as never);
    const size = 300_000;
    for (let pass = 1; pass <= 2; pass++) {
      for (let at = 0; at < bytes.length;) {
        const reads: Promise<void>[] = [];
        for (; reads.length < underWay && at < bytes.length; at += size) {
          const [offset, into] = [at, new Uint8Array(Math.min(size, bytes.length - at))];
          const check = () => expect(same(into, bytes.subarray(offset, offset + into.length))).toBe(true);
          reads.push(reader.read(offset, into).then(check));
        }
        await Promise.all(reads);
      }
      // Blocks that were held for those that came last are held no more.
      expect(blob.slices.length).toBe(8 * pass);
    }
  });

  it('tells a range beyond the end, and a file that was changed', async () => {
    const reader = new BlockReader(new Blob([noise(100)]));
    await expect(reader.read(90, new Uint8Array(11))).rejects.toMatchObject({ code: 'truncated' });
    let gone = true;
    const moody = {
      size: 100,
      slice: () => (gone ? { arrayBuffer: () => Promise.reject(new Error('gone')) } : new Blob([noise(100)])),
    } as unknown as Blob;
    const other = new BlockReader(moody);
    await expect(other.read(0, new Uint8Array(10))).rejects.toMatchObject({ code: 'io_error' });
    gone = false;
    await other.read(0, new Uint8Array(10));
  });

  it('tells a slice that has fewer bytes than the blob said', async () => {
    const shrunk = { size: 100, slice: () => new Blob([noise(50)]) } as unknown as Blob;
    await expect(new BlockReader(shrunk).read(60, new Uint8Array(10))).rejects.toMatchObject({
      ...{ code: 'truncated', message: 'the file ends 50 bytes before 100' },
    });
  });
});

describe('BlobSource', () => {
  const PIECE = 700_000;
  const bytes = noise(30 * MiB);

  /** Streams all pieces but each fourth, as a pass does, so many at a time. */
  async function pass(source: BlobSource, underWay = 3): Promise<void> {
    const waiting: Promise<void>[] = [];
    for (let i = 0, offset = 1000; offset + PIECE <= bytes.length; i++, offset += PIECE) {
      if (i % 4 === 3) continue;
      const into = new Uint8Array(PIECE);
      const check = () => expect(same(into, bytes.subarray(offset, offset + PIECE))).toBe(true);
      waiting.push(Promise.resolve(source.read({ offset, into, crc: undefined })).then(check));
      if (waiting.length === underWay) await waiting.shift();
    }
    await Promise.all(waiting);
  }

  it('streams a pass in runs of neighbours, each byte once, in a bounded room', async () => {
    const blob = new CountedBlob(bytes);
    const source = new BlobSource(blob as never);
    for (let i = 0; i < 3; i++) await pass(source);
    blob.slices.length = 0;
    await pass(source);
    await pass(source);
    // Three of four neighbours, and no byte of the fourth; ten of them and two more are in a pass.
    const count = Math.floor((bytes.length - 1000) / PIECE);
    const streamed = count - Math.floor(count / 4);
    expect(blob.slices.length).toBeLessThanOrEqual(2 * Math.ceil(count / 4) + 3);
    const total = blob.slices.reduce((sum, size) => sum + size, 0);
    // Runs that the next pass begins with are on their way.
    expect(total).toBeGreaterThanOrEqual(2 * streamed * PIECE);
    expect(total).toBeLessThanOrEqual(2 * streamed * PIECE + 3 * 3 * PIECE);
    expect(Math.max(...blob.slices)).toBeLessThanOrEqual(4 * MiB);
    expect(blob.mostUnderWay).toBeLessThanOrEqual(3 * 4 * MiB);
  });

  it('gives its bytes and counts them', async () => {
    const source = new BlobSource(new Blob([bytes.subarray(0, 1000)]));
    const into = new Uint8Array(100);
    await source.read({ offset: 900, into, crc: undefined });
    expect(same(into, bytes.subarray(900, 1000))).toBe(true);
    expect(source.stats()).toMatchObject({ blob: 100, network: 0, cache: 0, cacheState: 'off', loaded: 1000 });
  });

  it.each(['short', 'gone'] as const)(
    'ends a pass over a file that is %s, also one that is read ahead',
    async (how) => {
      const blob = new CountedBlob(bytes);
      const source = new BlobSource(blob as never);
      for (let i = 0; i < 3; i++) await pass(source);
      blob.fault = how;
      await expect(pass(source, 1)).rejects.toMatchObject({ code: how === 'short' ? 'truncated' : 'io_error' });
      blob.fault = undefined;
      await pass(source);
    },
  );
});

describe('BytesSource', () => {
  it('gives bytes in memory without waiting, and refuses those beyond', () => {
    const bytes = noise(1000);
    const source = new BytesSource(bytes);
    const into = new Uint8Array(new SharedArrayBuffer(100));
    expect(source.read({ offset: 900, into, crc: undefined })).toBeUndefined();
    expect(same(into, bytes.subarray(900))).toBe(true);
    expect(source.stats()).toMatchObject({ blob: 100, loaded: 1000 });
    expect(() => source.read({ offset: 901, into, crc: undefined })).toThrow(
      expect.objectContaining({ code: 'truncated', message: 'the model ends 1 bytes before 1001' }) as Error,
    );
  });
});
