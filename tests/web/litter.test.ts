import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { describe, expect, it, vi } from 'vitest';

import { Blocks } from '../../web/src/sources/blocks.js';
import { Litter } from '../../web/src/sources/litter.js';

const MiB = 1024 * 1024;
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** A browser that collects when it is told, or never; and how often it was. */
let collects = true;
let told = 0;
vi.mock('../../web/src/tick.js', () => ({
  tick: async () => {
    told++;
    if (collects) gc();
    await new Promise((resolve) => setTimeout(resolve, 1));
  },
}));

describe('used chunks', () => {
  it('are waited for until the browser has collected them', async () => {
    const litter = new Litter();
    for (let i = 0; i < 40; i++) await litter.add(new Uint8Array(MiB));
    expect(litter.bytes).toBeLessThan(20 * MiB);
  });

  it('hold nothing up for good where nobody collects', async () => {
    collects = false;
    const litter = new Litter();
    const kept: Uint8Array<ArrayBuffer>[] = [];
    for (let i = 0; i < 60; i++) {
      kept.push(new Uint8Array(MiB));
      await litter.add(kept.at(-1)!);
    }
    expect(litter.bytes).toBe(60 * MiB);
    told = 0;
    for (const chunk of kept) await litter.add(chunk);
    expect(told).toBeLessThan(100);
  });

  it('are waited for again once somebody collects', async () => {
    collects = false;
    const litter = new Litter();
    for (let i = 0; i < 30; i++) await litter.add(new Uint8Array(MiB));
    collects = true;
    for (let i = 0; i < 60; i++) await litter.add(new Uint8Array(MiB));
    expect(litter.bytes).toBeLessThan(20 * MiB);
  });
});

describe('blocks', () => {
  it('are used again', () => {
    const blocks = new Blocks();
    const first = blocks.take(1000);
    expect(first).toHaveLength(1000);
    blocks.give(first);
    expect(blocks.take(500_000).buffer).toBe(first.buffer);
    const large = blocks.take(3 * MiB);
    expect(large).toHaveLength(3 * MiB);
    expect(large.buffer).not.toBe(first.buffer);
  });
});
