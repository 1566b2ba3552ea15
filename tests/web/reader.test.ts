// The worker that reads ahead, behind a kept model: what it gives, and what is done without it.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { openCache } from '../../web/src/sources/model-cache.js';
import type { ModelCache } from '../../web/src/sources/model-cache.js';
import { READER, serveReads } from '../../web/src/sources/reader.js';
import { installFakeOpfs, modelFile } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';
import { ScopeWorker, installScopeWorker } from './fake-scope.js';
import { noise, same } from './fake-server.js';
import { shortenTimers } from './waiting.js';

const URL_ = 'https://example.org/model.qsf';
const PIECE = 64 * 1024;
/** More than what is read ahead. */
const SIZE = 120 * PIECE;
const bytes = noise(SIZE);

let top: FakeFolder;
let kept: ModelCache;
let warnings: string[];

/** The model's file. */
const file = () => modelFile(top);

/** The time, which goes on with each read of the model's file. */
let now = 0;
let pace = 10;

beforeEach(() => {
  installScopeWorker(serveReads);
  pace = 10;
  warnings = [];
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

async function open(modes: boolean): Promise<void> {
  top = installFakeOpfs(() => 0, {}, modes);
  kept = (await openCache(URL_, undefined, (sentence) => warnings.push(sentence)))!;
  file().onRead = () => void (now += pace);
  kept.reset({ url: URL_, validator: '"1"', size: SIZE });
  kept.write(0, bytes);
  kept.mark(0, SIZE);
  kept.markComplete();
}

/** A pass over what is streamed, every piece but each third; a turn of the event loop now and then. */
async function pass(): Promise<void> {
  for (let offset = 0; offset < SIZE; offset += PIECE) {
    if (offset % (3 * PIECE) === 0) continue;
    const into = new Uint8Array(PIECE);
    await kept.read(offset, into);
    expect(same(into, bytes.subarray(offset, offset + PIECE))).toBe(true);
    if (offset % (8 * PIECE) === 0) await new Promise((resolve) => setTimeout(resolve));
  }
}

describe('the reader', () => {
  it('reads what comes next, where a file can have two handles', async () => {
    await open(true);
    for (let i = 0; i < 12; i++) await pass();
    const [worker] = ScopeWorker.made;
    expect(worker!.name.split(' ')[0]).toBe(READER);
    expect(worker!.reads).toBeGreaterThan(3);
    expect(file().open).toBe(2);
    await kept.close();
    expect(file().open).toBe(0);
  });

  it.each([
    { rate: 7, ms: 10, expected: [expect.stringContaining('at 7 MB/s')] },
    { rate: 655, ms: 0.1, expected: [] },
  ])('is begun at $rate MB/s, and says once if that is slow', async ({ ms, expected }) => {
    await open(true);
    pace = ms;
    for (let i = 0; i < 12; i++) await pass();
    expect(ScopeWorker.made).toHaveLength(1);
    expect(warnings).toEqual(expected);
    await kept.close();
  });

  it.each([
    { where: 'a file has one handle', modes: false, ms: 10, passes: 6 },
    { where: 'reading is fast', modes: true, ms: 1e-3, passes: 6 },
    { where: 'nothing is read again', modes: true, ms: 1000, passes: 1 },
  ])('is not begun where $where', async ({ modes, ms, passes }) => {
    await open(modes);
    pace = ms;
    for (let i = 0; i < passes; i++) await pass();
    expect(ScopeWorker.made).toHaveLength(0);
    await kept.close();
    expect(file().open).toBe(0);
  });

  it.each(['throws', 'fails', 'takes no message', 'finds the file taken'] as const)(
    'is done without when its start %s',
    async (how) => {
      await open(true);
      if (how === 'finds the file taken') file().isTaken = true;
      else ScopeWorker.cannotStart = how;
      for (let i = 0; i < 8; i++) await pass();
      expect(ScopeWorker.made).toHaveLength(how === 'throws' ? 0 : 1);
      for (const { reads, terminated } of ScopeWorker.made)
        expect({ reads, terminated }).toEqual({ reads: 0, terminated: true });
      await kept.close();
      expect(file().open).toBe(0);
    },
  );

  it.each(['ends', 'cannot read', 'finds the file short', 'does not answer'] as const)(
    'is done without once it %s',
    async (fault) => {
      await open(true);
      for (let i = 0; i < 6; i++) await pass();
      const [worker] = ScopeWorker.made;
      expect(worker!.reads).toBeGreaterThan(0);
      if (fault === 'ends') worker!.fail();
      else if (fault === 'cannot read') file().broken = 2;
      else if (fault === 'finds the file short') file().short = 2;
      else {
        worker!.isMute = true;
        shortenTimers();
      }
      for (let i = 0; i < 10; i++) await pass();
      expect(worker!.terminated).toBe(true);
      const { reads } = worker!;
      for (let i = 0; i < 3; i++) await pass();
      expect(worker!.reads).toBe(reads);
      await kept.close();
      // What a worker that has ended had open is closed by the browser.
      expect(file().open).toBe(1);
    },
  );

  it('holds nobody up who closes while it does not answer', async () => {
    await open(true);
    for (let i = 0; i < 6; i++) await pass();
    ScopeWorker.made[0]!.isMute = true;
    shortenTimers();
    await kept.close();
    expect(ScopeWorker.made[0]!.terminated).toBe(true);
  });

  it('lets go of a file that it was about to open when it is closed', async () => {
    await open(true);
    for (let i = 0; i < 200 && ScopeWorker.made.length === 0; i++) {
      const offset = (i % 120) * PIECE;
      await kept.read(offset, new Uint8Array(PIECE));
    }
    expect(ScopeWorker.made).toHaveLength(1);
    expect(file().open).toBe(1);
    await kept.close();
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setTimeout(resolve));
    expect(file().open).toBe(0);
  });

  it('gives nothing of a file that was begun anew', async () => {
    await open(true);
    for (let i = 0; i < 3; i++) await pass();
    kept.reset({ url: URL_, validator: '"2"', size: SIZE });
    const other = noise(SIZE, 2);
    kept.write(0, other);
    kept.mark(0, SIZE);
    kept.markComplete();
    for (let offset = 0; offset < SIZE; offset += PIECE) {
      const into = new Uint8Array(PIECE);
      await kept.read(offset, into);
      expect(same(into, other.subarray(offset, offset + PIECE))).toBe(true);
    }
    await kept.close();
  });
});
