// The progress of an opening: the reports to the page, and their rate.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ProgressReport } from '../../web/src/worker/progress.js';
import type { Progress } from '../../web/src/progress-types.js';
import { FakeSource } from './fake-engine.js';

let now: number;
let seen: Progress[];
let source: FakeSource;
let report: ProgressReport;
beforeEach(() => {
  now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  seen = [];
  source = new FakeSource();
  source.size = 1_000_000;
  report = new ProgressReport((progress) => seen.push(progress));
  report.watch(source);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const last = () => seen.at(-1)!;

/** Bytes arrive, so many in each tenth of a second, for some seconds. */
function arrive(bytes: number, seconds: number): void {
  for (let i = 0; i < 10 * seconds; i++) {
    now += 100;
    source.loaded += bytes;
    source.onLoaded!();
  }
}

describe('a download', () => {
  it('at one rate has this rate from the beginning, and the time that is left', () => {
    report.begin('download');
    expect(last()).toEqual({ phase: 'download', loaded: 0, total: 1_000_000, network: 0, cache: 0 });
    arrive(5000, 4);
    expect(last().rate).toBeCloseTo(50_000, 6);
    expect(last().secondsLeft).toBeCloseTo(800_000 / 50_000, 6);
    for (const { rate } of seen.slice(1)) expect(rate).toBeCloseTo(50_000, 6);
  });

  it('whose rate changes follows it smoothly: by 1 - 1/e in four seconds', () => {
    report.begin('download');
    arrive(1000, 4);
    arrive(2000, 4);
    expect(last().rate).toBeCloseTo(20_000 - 10_000 / Math.E, 6);
    arrive(0, 4);
    expect(last().rate).toBeCloseTo((20_000 - 10_000 / Math.E) / Math.E, 6);
  });

  it('does not count what was present before', () => {
    source.loaded = 900_000;
    report.begin('download');
    arrive(100, 1);
    expect(last().rate).toBeCloseTo(1000, 6);
    expect(last().secondsLeft).toBeCloseTo((1_000_000 - 901_000) / 1000, 6);
  });

  it('without a byte so far has no rate, and one that was complete before has none', () => {
    report.begin('download');
    arrive(0, 3);
    expect(last()).not.toHaveProperty('rate');
    expect(last()).not.toHaveProperty('secondsLeft');
    source.loaded = source.size;
    report.begin('ready');
    expect(last()).toEqual({ phase: 'ready', loaded: 1_000_000, total: 1_000_000, network: 0, cache: 0 });
  });

  it('is reported ten times a second at most', () => {
    report.begin('download');
    for (let i = 0; i < 1000; i++) {
      now += 1;
      source.onLoaded!();
    }
    expect(seen).toHaveLength(11);
  });
});

it('a retry is reported at once, until bytes arrive', () => {
  const early: Progress[] = [];
  const retry = { attempt: 2, tries: 6, seconds: 0.4 };
  const opening = new ProgressReport((progress) => early.push(progress));
  opening.retries(retry);
  expect(early).toEqual([{ phase: 'open', loaded: 0, total: 0, network: 0, cache: 0, retry }]);
  report.begin('download');
  arrive(10, 1);
  report.retries(retry);
  expect(last()).toMatchObject({ phase: 'download', retry });
  arrive(10, 1);
  expect(last()).not.toHaveProperty('retry');
});

it('the plan and the expected speed are in every report from their phase on', () => {
  const expected = { tokensPerSecond: 12, residentMemory: 5, residentTokensPerSecond: 30 };
  const plan = { weightBytes: 9, pinnedBytes: 4, tokenBytes: 5, kv: 'f16', maxSeqLen: 64 } as const;
  report.begin('open');
  expect(last()).not.toHaveProperty('plan');
  report.begin('plan', { plan, expected });
  report.begin('download');
  arrive(10, 1);
  expect(last()).toMatchObject({ plan, expected });
});
