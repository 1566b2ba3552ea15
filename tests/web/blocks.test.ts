import { expect, it } from 'vitest';

import { Blocks } from '../../web/src/sources/blocks.js';

const MiB = 1024 * 1024;

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
