import { describe, expect, it } from 'vitest';

import { RangeSet, takeRun } from '../../web/src/sources/ranges.js';
import { noise } from './fake-server.js';

describe('RangeSet', () => {
  it('is a set of positions, whatever is added and removed', () => {
    const size = 64;
    const random = noise(6000);
    const truth = new Array<boolean>(size).fill(false);
    const set = new RangeSet();
    for (let i = 0; i < 2000; i++) {
      const [what, a, b] = random.subarray(3 * i, 3 * i + 3) as unknown as [number, number, number];
      const offset = a % size;
      const length = b % (size - offset + 1);
      if (what % 3 === 0) set.remove(offset, length);
      else set.add(offset, length);
      truth.fill(what % 3 !== 0, offset, offset + length);
      expect(set.total).toBe(truth.filter(Boolean).length);
      const from = b % size;
      const span = a % (size - from + 1);
      expect(set.covers(from, span)).toBe(truth.slice(from, from + span).every(Boolean));
    }
  });

  it('joins ranges that touch', () => {
    const set = new RangeSet();
    set.add(10, 5);
    set.add(20, 5);
    set.add(15, 5);
    expect([...set]).toEqual([[10, 25]]);
  });

  it('counts far beyond 32 bits', () => {
    const set = new RangeSet();
    set.add(2 ** 40, 10);
    expect(set.covers(2 ** 40 + 9, 1)).toBe(true);
    expect(set.covers(2 ** 40 + 9, 2)).toBe(false);
  });
});

describe('takeRun', () => {
  const range = (offset: number, size: number) => ({ offset, size });

  it('begins with the first wanted and takes what follows it in the file', () => {
    const wanted = [range(100, 10), range(0, 10), range(120, 10), range(110, 10)];
    expect(takeRun(wanted, { bytes: 1000, gap: 0 })).toEqual([range(100, 10), range(110, 10), range(120, 10)]);
    expect(wanted).toEqual([range(0, 10)]);
  });

  it('bridges gaps up to the limit', () => {
    expect(takeRun([range(0, 10), range(14, 10), range(29, 10)], { bytes: 1000, gap: 4 })).toHaveLength(2);
  });

  it('measures a gap from the largest end, also of a range around others', () => {
    expect(takeRun([range(0, 100), range(10, 10), range(150, 10)], { bytes: 1000, gap: 60 })).toHaveLength(3);
  });

  it('stops at the limit of bytes, but takes a first range larger than it', () => {
    expect(takeRun([range(0, 60), range(60, 40), range(100, 1)], { bytes: 100, gap: 0 })).toHaveLength(2);
    expect(takeRun([range(0, 500), range(500, 1)], { bytes: 100, gap: 0 })).toEqual([range(0, 500)]);
  });

  it('gives nothing for nothing', () => {
    expect(takeRun([], { bytes: 100, gap: 0 })).toEqual([]);
  });
});
