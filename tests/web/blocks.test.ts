import { afterEach, expect, it, vi } from 'vitest';

import { Blocks, LARGEST } from '../../web/src/sources/blocks.js';

const MiB = 1024 * 1024;

afterEach(() => vi.unstubAllGlobals());

it('blocks are used again', () => {
  const blocks = new Blocks();
  const first = blocks.take(1000);
  expect(first).toHaveLength(1000);
  blocks.give(first);
  expect(blocks.take(500_000).buffer).toBe(first.buffer);
  const large = blocks.take(3 * MiB);
  expect(large).toHaveLength(3 * MiB);
  expect(large.buffer).not.toBe(first.buffer);
});

it('more than one block has are refused, and so is what the browser does not give', () => {
  const blocks = new Blocks();
  expect(blocks.take(LARGEST)).toHaveLength(LARGEST);
  expect(() => blocks.take(LARGEST + 1)).toThrow(expect.objectContaining({ code: 'out_of_memory' }) as Error);
  vi.stubGlobal('ArrayBuffer', function refuse() {
    throw new RangeError('Array buffer allocation failed');
  });
  expect(() => blocks.take(5)).toThrow(expect.objectContaining({ code: 'out_of_memory' }) as Error);
});

it('large blocks do not pile up', () => {
  const blocks = new Blocks();
  const all = Array.from({ length: 8 }, () => blocks.take(4 * MiB));
  for (const block of all) blocks.give(block);
  const again = Array.from({ length: 8 }, () => blocks.take(4 * MiB));
  expect(again.filter(({ buffer }) => all.some((block) => block.buffer === buffer))).toHaveLength(2);
});
