// The worker that fills the engine's memory where that is shared: what it fills, and what is done without it.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { KiB } from '../../web/src/constants.js';
import { FILLER, Filler, serveFills } from '../../web/src/sources/filler.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import type { ModelCache } from '../../web/src/sources/model-cache.js';
import { installFakeOpfs, modelFile } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';
import { ScopeWorker, installScopeWorker } from './fake-scope.js';
import { noise, same } from './fake-server.js';
import { shortenTimers } from './waiting.js';

// Who sleeps in no time would keep timers waiting by its messages.
vi.mock('../../web/src/worker/tick.js', () => ({ tick: () => new Promise((resolve) => setImmediate(resolve)) }));

const PIECE = 20 * KiB;
const SIZE = 40 * PIECE;
/** Too small for the other worker. */
const SMALL = KiB;
const bytes = noise(SIZE);
const memory = new SharedArrayBuffer(4 * PIECE);

let top: FakeFolder;
let kept: ModelCache;
/** The time, which goes on with each look at it and each read of the model's file. */
let now = 0;
let pace = 10;
/** What goes by while nothing comes. */
let idle = 0;
/** What ends a sleep. */
let woken: 'timed-out' | 'ok' = 'timed-out';

const file = () => modelFile(top);
const stateOf = ({ opening }: ScopeWorker) => (opening as { state: Int32Array }).state;
const turn = () => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => {
  pace = 10;
  idle = 0;
  woken = 'timed-out';
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 0.01));
  // Both sides are this thread: who would sleep lets the other go on.
  const wait = Atomics.wait.bind(Atomics) as (state: Int32Array, ...rest: number[]) => 'timed-out';
  vi.spyOn(Atomics, 'wait').mockImplementation(((state: Int32Array, ...rest: number[]) => {
    const worker = ScopeWorker.made.find((one) => stateOf(one) === state);
    if (worker?.terminated) throw new Error('terminated');
    return worker ? woken : wait(state, ...rest);
  }) as typeof Atomics.wait);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

async function open(modes = true): Promise<void> {
  top = installFakeOpfs(() => 0, {}, modes);
  installScopeWorker(serveFills);
  kept = (await openCache('https://example.org/model.qsf'))!;
  file().onRead = () => void (now += pace);
  kept.reset({ url: 'https://example.org/model.qsf', validator: '"1"', size: SIZE });
  kept.write(0, bytes);
  kept.mark(0, SIZE);
  kept.markComplete();
}

/** What was read by a message's turn: nothing tells of it but poll(). */
async function settled(reading: Promise<void> | undefined): Promise<void> {
  let isDone = false;
  const done = reading?.finally(() => (isDone = true));
  while (reading && !isDone) {
    kept.poll!(0);
    now += idle;
    await turn();
  }
  await done;
}

/** A pass that has two reads under way; gives how many did not end at once. */
async function pass(): Promise<number> {
  let waited = 0;
  for (let offset = 0; offset < SIZE; offset += 2 * PIECE) {
    const places = [0, 1].map((i) => new Uint8Array(memory, i * PIECE, PIECE).fill(0));
    const reads = places.map((into, i) => kept.read(offset + i * PIECE, into));
    waited += reads.filter((reading) => reading !== undefined).length;
    await Promise.all(reads.map(settled));
    await turn();
    places.forEach((into, i) => {
      const from = offset + i * PIECE;
      expect(same(into, bytes.subarray(from, from + PIECE))).toBe(true);
    });
  }
  return waited;
}

/** Passes until the other worker fills. */
async function begin(): Promise<ScopeWorker> {
  for (let i = 0; i < 20; i++) if ((await pass()) > 0) return ScopeWorker.made[0]!;
  throw new Error('no worker fills');
}

describe('the worker that fills shared memory', () => {
  it('fills it where a file can have two handles, however fast reading is', async () => {
    await open();
    pace = 1;
    const worker = await begin();
    expect(worker.name.split(' ')[0]).toBe(FILLER);
    expect(file().open).toBe(2);
    const small = new Uint8Array(memory, 0, SMALL);
    expect(kept.read(5, small)).toBeUndefined();
    expect(same(small, bytes.subarray(5, 5 + SMALL))).toBe(true);
    await kept.close();
    expect(file().open).toBe(0);
  });

  it.each([
    { where: 'a file has one handle', modes: false, passes: 6 },
    { where: 'nothing is read again', modes: true, passes: 1 },
  ])('is not begun where $where', async ({ modes, passes }) => {
    await open(modes);
    for (let i = 0; i < passes; i++) expect(await pass()).toBe(0);
    expect(ScopeWorker.made).toHaveLength(0);
    await kept.close();
  });

  it.each(['throws', 'fails', 'takes no message', 'finds the file taken'] as const)(
    'is done without when its start %s',
    async (how) => {
      await open();
      if (how === 'finds the file taken') file().isTaken = true;
      else ScopeWorker.cannotStart = how;
      for (let i = 0; i < 8; i++) expect(await pass()).toBe(0);
      expect(ScopeWorker.made.map(({ terminated }) => terminated)).toEqual(how === 'throws' ? [] : [true]);
      await kept.close();
      expect(file().open).toBe(0);
    },
  );

  it.each(['ends', 'cannot read', 'finds the file short', 'does not answer'] as const)(
    'is done without once it %s',
    async (fault) => {
      await open();
      const worker = await begin();
      if (fault === 'ends') worker.fail();
      else if (fault === 'cannot read') file().broken = 2;
      else if (fault === 'finds the file short') file().short = 2;
      else vi.spyOn(Atomics, 'load').mockImplementation(frozen(worker));
      if (fault === 'does not answer') idle = 1000;
      for (let i = 0; i < 20 && !worker.terminated; i++) await pass();
      expect(worker.terminated).toBe(true);
      vi.mocked(Atomics.load).mockRestore?.();
      for (let i = 0; i < 3; i++) expect(await pass()).toBe(0);
      await kept.close();
    },
  );

  it('reads nothing that was not asked for when it is woken late', async () => {
    await open();
    await begin();
    let reads = 0;
    file().onRead = () => void reads++;
    woken = 'ok';
    for (let i = 0; i < 20; i++) await turn();
    expect({ reads, open: file().open }).toEqual({ reads: 0, open: 2 });
    await pass();
    expect(reads).toBe(SIZE / PIECE);
    await kept.close();
  });

  it('holds nobody up who closes while it does not answer', async () => {
    await open();
    const worker = await begin();
    shortenTimers();
    vi.spyOn(Atomics, 'load').mockImplementation(frozen(worker));
    await kept.close();
    expect(worker.terminated).toBe(true);
    // Its loop ends in this thread.
    for (let i = 0; i < 10; i++) await turn();
  });

  it('looks for a while before it sleeps, and seldom where that was in vain', async () => {
    await open();
    await begin();
    await pass();
    const [looks, sleeps] = [vi.spyOn(Atomics, 'load'), vi.mocked(Atomics.wait)];
    /** Looks for each of so many sleeps. */
    const looked = async (count: number) => {
      looks.mockClear();
      sleeps.mockClear();
      while (sleeps.mock.calls.length < count) await turn();
      return looks.mock.calls.length / sleeps.mock.calls.length;
    };
    // A tenth of a millisecond would be a thousand.
    expect(await looked(160)).toBeLessThan(100);
    await kept.close();
  });

  it('is not cut off in a read, whose bytes would come when others may lie there', async () => {
    await open();
    const worker = await begin();
    const into = new Uint8Array(memory, 0, PIECE).fill(0);
    let told = false;
    let ended: boolean | undefined;
    file().onRead = () => {
      if (ended !== undefined) return;
      worker.fail();
      ended = worker.terminated;
    };
    const reading = kept.read(0, into);
    expect(reading).toBeDefined();
    void reading!.then(() => (told = true));
    while (ended === undefined) await turn();
    expect({ ended, told }).toEqual({ ended: false, told: false });
    await settled(reading);
    while (!worker.terminated) await turn();
    expect(same(into, bytes.subarray(0, PIECE))).toBe(true);
    await kept.close();
  });
});

/** Sees nothing that changes from now on in what a worker shares. */
function frozen(worker: ScopeWorker): typeof Atomics.load {
  const load = Atomics.load.bind(Atomics) as (state: Int32Array, at: number) => number;
  const seen = stateOf(worker).slice();
  return ((state: Int32Array, at: number) =>
    state === stateOf(worker) ? seen[at]! : load(state, at)) as typeof Atomics.load;
}

/** A filler of a file of any size, whose bytes are 7, and the offsets that are read. */
async function ofLargeFile(): Promise<{ filler: Filler; asked: number[] }> {
  installFakeOpfs(() => 0, {}, true);
  installScopeWorker(serveFills);
  const asked: number[] = [];
  const read = (into: Uint8Array, { at }: { at: number }) => {
    asked.push(at);
    return into.fill(7).length;
  };
  const handle = { mode: 'readwrite-unsafe', read, close: () => {} };
  const large = { createSyncAccessHandle: async () => handle } as unknown as FileSystemFileHandle;
  const filler = new Filler(large, memory);
  while (!filler.isOpen) await turn();
  return { filler, asked };
}

it('takes no more reads than have a place in its memory', async () => {
  const { filler, asked } = await ofLargeFile();
  const into = new Uint8Array(memory, 0, PIECE);
  const reads = Array.from({ length: 80 }, (_, i) => filler.fill(i, into)).filter((read) => read !== undefined);
  expect(reads).toHaveLength(63);
  while (asked.length < reads.length) {
    filler.poll(0);
    await turn();
  }
  filler.poll(0);
  expect(await Promise.all(reads)).toEqual(reads.map(() => true));
  expect(asked).toEqual(reads.map((_, i) => i));
  await filler.close();
});

it('a read is where it is asked for, beyond 4 GiB too', async () => {
  const { filler, asked } = await ofLargeFile();
  const into = new Uint8Array(memory, PIECE, PIECE).fill(0);
  const offsets = [5, 2 ** 31 + 1, 2 ** 32 - 1, 5 * 2 ** 32 + 2 ** 31 + 3];
  for (const offset of offsets) {
    const filled = filler.fill(offset, into);
    while (!filler.poll(0)) await turn();
    expect(await filled).toBe(true);
  }
  expect(asked).toEqual(offsets);
  expect(into.every((byte) => byte === 7)).toBe(true);
  await filler.close();
});
