import { describe, expect, it } from 'vitest';

import { BlobSource, BlockReader } from '../../web/src/sources/blob.js';
import { noise, same } from './fake-server.js';

const MiB = 1024 * 1024;

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

  it('reads a file in order with one slice per block, and holds a few blocks only', async () => {
    const bytes = noise(8 * MiB);
    const blob = new Blob([bytes]);
    let slices = 0;
    const counted = {
      size: blob.size,
      slice: (begin: number, end: number) => {
        slices++;
        return blob.slice(begin, end);
      },
    } as Blob;
    const reader = new BlockReader(counted);
    const into = new Uint8Array(65_536);
    for (let pass = 1; pass <= 2; pass++) {
      for (let offset = 0; offset < bytes.length; offset += into.length) {
        await reader.read(offset, into);
        expect(same(into, bytes.subarray(offset, offset + into.length))).toBe(true);
      }
      expect(slices).toBe(8 * pass);
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
});

it('a Blob is a source of its bytes', async () => {
  const bytes = noise(1000);
  const source = new BlobSource(new Blob([bytes]));
  const into = new Uint8Array(100);
  await source.read({ offset: 900, into, crc: undefined });
  expect(same(into, bytes.subarray(900))).toBe(true);
  expect(source.stats()).toMatchObject({ blob: 100, network: 0, cache: 0 });
});
