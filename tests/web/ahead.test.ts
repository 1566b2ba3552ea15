import { afterEach, describe, expect, it, vi } from 'vitest';

import { ReadAhead, Trial } from '../../web/src/sources/ahead.js';
import type { Supply } from '../../web/src/sources/ahead.js';

const MiB = 1024 * 1024;
const byteAt = (offset: number) => (offset * 31 + (offset >>> 12)) & 0xff;

interface Piece {
  offset: number;
  size: number;
}

/** Fetches at the next turn, or when a test says; counts what it gave and got back. */
class FakeSupply implements Supply {
  readonly gap = 100;
  readonly asked: Piece[] = [];
  fails = false;
  /** Bytes that it leaves out at a run's end. */
  lacks = 0;
  ready = true;
  readonly blocks = new Set<ArrayBuffer>();
  hold: Promise<void> = Promise.resolve();

  fetch(offset: number, into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> | undefined {
    if (!this.ready) return undefined;
    this.asked.push({ offset, size: into.length });
    this.blocks.add(into.buffer);
    return this.hold.then(() => {
      if (this.fails) throw new Error('gone');
      for (let i = 0; i < into.length; i++) into[i] = byteAt(offset + i);
      return into.subarray(0, into.length - this.lacks);
    });
  }
}

/** Reads as the engine does, three at a time; gives how many came from what was read ahead. */
async function readAll(ahead: ReadAhead, pieces: readonly Piece[]): Promise<number> {
  let came = 0;
  const waiting: Promise<void>[] = [];
  for (const { offset, size } of pieces) {
    const into = new Uint8Array(size);
    const read = Promise.resolve(ahead.read(offset, into)).then((here) => {
      if (!here) return;
      came++;
      expect([into[0], into.at(-1)]).toEqual([byteAt(offset), byteAt(offset + size - 1)]);
    });
    read.catch(() => {});
    waiting.push(read);
    if (waiting.length === 3) await waiting.shift();
  }
  await Promise.all(waiting);
  return came;
}

/** Pieces of so many bytes; each fourth is in memory, so that it is not asked for. */
const streamed = (n: number, size: number): Piece[] =>
  Array.from({ length: n }, (_, i) => ({ offset: 500 + i * size, size })).filter((_, i) => i % 4 !== 3);

/** A number below `n`, another each time, the same in each run. */
function* numbers(n: number): Generator<number, never> {
  for (let x = 1; ; x = (x * 48271) % 2147483647) yield x % n;
}

describe('reading ahead', () => {
  it('has what a pass asks for before it does, in runs of neighbours', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pass = streamed(40, 1000);
    expect(await readAll(ahead, pass)).toBe(0);
    await readAll(ahead, pass);
    supply.asked.length = 0;
    expect(await readAll(ahead, pass)).toBe(pass.length);
    expect(await readAll(ahead, pass)).toBe(pass.length);
    // Three pieces are a run, but for where the pass began to be known; none is read twice.
    expect(supply.asked.length).toBeLessThanOrEqual(2 * 10 + 2);
    expect(supply.asked.reduce((sum, { size }) => sum + size, 0)).toBe(2 * 30 * 1000);
  });

  it('reads small gaps along, and no more than a MiB at once', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pass = Array.from({ length: 20 }, (_, i) => ({ offset: i * 300_100, size: 300_000 }));
    for (let i = 0; i < 3; i++) await readAll(ahead, pass);
    supply.asked.length = 0;
    expect(await readAll(ahead, pass)).toBe(20);
    expect(supply.asked.length).toBeLessThanOrEqual(8);
    expect(Math.max(...supply.asked.map(({ size }) => size))).toBeLessThanOrEqual(MiB);
    const large = Array.from({ length: 20 }, (_, i) => ({ offset: 3 + i * 3 * MiB, size: 2 * MiB }));
    for (let i = 0; i < 3; i++) await readAll(ahead, large);
    expect(await readAll(ahead, large)).toBe(20);
  });

  it('is not led astray by look-ups, nor by what has to make room for them', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pass = streamed(80, 1000);
    const rows = numbers(20);
    const came: number[] = [];
    for (let i = 0; i < 8; i++) {
      // Of the pieces that the pass ends with, and the next one again.
      const row = pass[40 + rows.next().value]!;
      came.push(await readAll(ahead, [...pass.slice(0, 3), row, ...pass.slice(2)]));
    }
    for (const count of came.slice(4)) expect(count).toBeGreaterThanOrEqual(pass.length - 1);
  });

  it('knows the order of a short pass, too, if each has a look-up', async () => {
    const ahead = new ReadAhead(new FakeSupply());
    const pass = streamed(5, 1000);
    const came: number[] = [];
    for (let i = 0; i < 12; i++) {
      const row = { offset: 100_000 + 1000 * i, size: 1000 };
      came.push(await readAll(ahead, [...pass.slice(0, 2), row, ...pass.slice(2)]));
    }
    for (const count of came.slice(4)) expect(count).toBeGreaterThanOrEqual(pass.length - 1);
  });

  it('leaves pieces that are larger than any segment to the caller', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const into = new Uint8Array(16 * MiB + 1);
    for (let i = 0; i < 40; i++) expect(ahead.read((i % 3) * 20 * MiB, into)).toBe(false);
    expect(supply.asked).toEqual([]);
  });

  it('reads nothing where the order is another each time', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pieces = streamed(40, 1000);
    const experts = numbers(pieces.length);
    for (let i = 0; i < 50; i++)
      await readAll(ahead, [pieces[0]!, ...[1, 2, 3].map(() => pieces[experts.next().value]!)]);
    expect(supply.asked.length).toBeLessThan(10);
  });

  it('follows to another place of the order, where what is on its way is of no use', async () => {
    const ahead = new ReadAhead(new FakeSupply());
    const pass = streamed(80, 1000);
    for (let i = 0; i < 3; i++) await readAll(ahead, pass);
    await readAll(ahead, pass.slice(0, 20));
    const rest = pass.slice(40);
    expect(await readAll(ahead, rest)).toBeGreaterThanOrEqual(rest.length - 6);
  });

  it('learns a new order', async () => {
    const ahead = new ReadAhead(new FakeSupply());
    const pass = streamed(40, 1000);
    for (let i = 0; i < 3; i++) await readAll(ahead, pass);
    const other = [...pass].reverse();
    for (let i = 0; i < 3; i++) await readAll(ahead, other);
    expect(await readAll(ahead, other)).toBe(other.length);
  });

  it('knows as little after forget() as at first', async () => {
    for (const count of [2, 3, 40]) {
      const [old, fresh] = [new FakeSupply(), new FakeSupply()];
      const [forgotten, another] = [new ReadAhead(old), new ReadAhead(fresh)];
      const pass = streamed(count + 1, 1000).slice(0, count);
      for (let i = 0; i < 12; i++) await readAll(forgotten, pass);
      forgotten.forget();
      old.asked.length = 0;
      // The same places, in another order.
      const reversed = pass.toReversed();
      for (let i = 0; i < 8; i++) expect(await readAll(forgotten, reversed)).toBe(await readAll(another, reversed));
      expect(old.asked).toEqual(fresh.asked);
    }
  });

  it('says when there is nothing, and when it failed', async () => {
    const supply = new FakeSupply();
    supply.ready = false;
    const ahead = new ReadAhead(supply);
    const pass = streamed(40, 1000);
    for (let i = 0; i < 3; i++) expect(await readAll(ahead, pass)).toBe(0);
    supply.ready = true;
    supply.fails = true;
    await expect(readAll(ahead, pass)).rejects.toThrow('gone');
    supply.fails = false;
    await readAll(ahead, pass);
    expect(await readAll(ahead, pass)).toBe(pass.length);
  });

  it('takes fewer bytes than were asked for as none, and not as a whole run', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pass = streamed(40, 1000);
    for (let i = 0; i < 3; i++) await readAll(ahead, pass);
    supply.lacks = 1;
    // What was on its way is whole.
    await readAll(ahead, pass);
    const asked = supply.asked.length;
    expect(await readAll(ahead, pass)).toBe(0);
    expect(supply.asked.length).toBeGreaterThan(asked);
    supply.lacks = 0;
    await readAll(ahead, pass);
    expect(await readAll(ahead, pass)).toBe(pass.length);
  });

  it('uses the same blocks again, once those who wait for their bytes have them', async () => {
    const supply = new FakeSupply();
    const ahead = new ReadAhead(supply);
    const pass = streamed(40, 1000);
    for (let i = 0; i < 5; i++) await readAll(ahead, pass);
    let go!: () => void;
    supply.hold = new Promise((resolve) => (go = resolve));
    const last = readAll(ahead, pass);
    ahead.forget();
    go();
    // What was asked for has come; what was known is not, and has to be learnt again.
    expect(await last).toBe(3);
    for (let i = 0; i < 5; i++) await readAll(ahead, pass);
    expect(supply.asked.length).toBeGreaterThan(60);
    // Three runs, and three that were given up.
    expect(supply.blocks.size).toBeLessThanOrEqual(6);
  });
});

describe('a trial', () => {
  afterEach(() => vi.restoreAllMocks());

  /** Whether each pass from the first trial on reads ahead, where `time` says how long it takes. */
  const tried = (passes: number, time: (on: boolean, pass: number) => number) => {
    let now = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    const trial = new Trial();
    const was: boolean[] = [];
    for (let pass = -16; pass < passes; pass++) {
      for (const offset of [7, 8, 9]) trial.pass(offset);
      if (pass >= 0) was.push(trial.on);
      else expect(trial.on).toBe(true);
      now += time(trial.on, pass);
    }
    return was;
  };
  const count = (was: boolean[]) => was.filter(Boolean).length;
  // Now and then something else has the machine.
  const disturbed = (pass: number) => (pass % 5 === 0 ? 50 : 0);

  it('finds reading ahead to be faster', () => {
    const was = tried(300, (on, pass) => (on ? 10 : 20) + disturbed(pass));
    expect(count(was.slice(0, 8))).toBe(4);
    expect(count(was.slice(8, 128))).toBe(120);
    // Tried again, since what is faster may have changed.
    expect(count(was.slice(128, 136))).toBe(4);
    expect(count(was.slice(136, 256))).toBe(120);
  });

  it('finds it to be slower, and looks again less and less often', () => {
    const was = tried(600, (on, pass) => (on ? 20 : 10) + disturbed(pass));
    const trials = [0, 16, 48, 112, 240, 368, 496];
    for (const at of trials) expect(count(was.slice(at, at + 8))).toBe(4);
    expect(count(was)).toBe(4 * trials.length);
  });

  it('is soon repeated where something else had the machine for all of it', () => {
    const was = tried(300, (on, pass) => (pass < 12 ? 50 : on ? 10 : 20));
    expect(count(was.slice(8, 16))).toBe(0);
    expect(count(was.slice(24, 144))).toBe(120);
  });
});
