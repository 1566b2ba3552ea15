// The worker that reads ahead, behind a kept model: what it gives, and what is done without it.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { openCache } from '../../web/src/sources/model-cache.js';
import type { ModelCache } from '../../web/src/sources/model-cache.js';
import { READER, serveReads } from '../../web/src/sources/reader.js';
import { FakeFile, installFakeOpfs } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';
import { noise, same } from './fake-server.js';

const URL_ = 'https://example.org/model.qsf';
const SIZE = 400_000;
const PIECE = 10_000;
const bytes = noise(SIZE);

interface Scope {
  onmessage: ((event: { data: unknown }) => void) | undefined;
}

/** Runs serveReads() in this thread; what is transferred is gone here. */
class FakeWorker {
  static made: FakeWorker[] = [];
  static cannotStart: 'throws' | 'fails' | false = false;
  onmessage: ((event: { data: unknown }) => void) | undefined;
  onerror: (() => void) | undefined;
  terminated = false;
  reads = 0;
  readonly name: string;

  constructor(_address: string, { name }: { name: string }) {
    if (FakeWorker.cannotStart === 'throws') throw new DOMException('no', 'SecurityError');
    FakeWorker.made.push(this);
    this.name = name;
    if (FakeWorker.cannotStart === 'fails') setTimeout(() => this.onerror!());
    else this.#serve();
  }

  #serve(): void {
    vi.stubGlobal('postMessage', (data: unknown, options: StructuredSerializeOptions) => {
      const told: unknown = structuredClone(data, options);
      setTimeout(() => this.terminated || this.onmessage!({ data: told }));
    });
    serveReads();
  }

  postMessage(data: unknown, transfer?: Transferable[]): void {
    if (transfer?.length) this.reads++;
    const told: unknown = transfer ? structuredClone(data, { transfer }) : data;
    setTimeout(() => {
      if (this.terminated) return;
      try {
        (globalThis as unknown as Scope).onmessage?.({ data: told });
      } catch {
        this.onerror!();
      }
    });
  }

  terminate(): void {
    this.terminated = true;
  }
}

let top: FakeFolder;
let kept: ModelCache;

/** The model's file. */
const file = () =>
  [...(top.inside.get('qsf') as FakeFolder).inside.values()].flatMap((folder) => [
    (folder as FakeFolder).inside.get('model') as FakeFile,
  ])[0]!;

beforeEach(() => {
  FakeWorker.made = [];
  FakeWorker.cannotStart = false;
});
afterEach(() => vi.unstubAllGlobals());

async function open(modes: boolean): Promise<void> {
  top = installFakeOpfs(() => 0, {}, modes);
  vi.stubGlobal('Worker', FakeWorker);
  vi.stubGlobal('importScripts', undefined);
  vi.stubGlobal('onmessage', undefined);
  kept = (await openCache(URL_))!;
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
    for (let i = 0; i < 6; i++) await pass();
    const [worker] = FakeWorker.made;
    expect(worker!.name).toBe(READER);
    expect(worker!.reads).toBeGreaterThan(3);
    expect(file().open).toBe(2);
    await kept.close();
    expect(file().open).toBe(0);
    expect(worker!.terminated).toBe(true);
  });

  it('is not begun where a file has one handle', async () => {
    await open(false);
    for (let i = 0; i < 6; i++) await pass();
    expect(FakeWorker.made).toHaveLength(0);
    await kept.close();
    expect(file().open).toBe(0);
  });

  it.each(['throws', 'fails'] as const)('is done without when its start %s', async (how) => {
    await open(true);
    FakeWorker.cannotStart = how;
    for (let i = 0; i < 6; i++) await pass();
    expect(FakeWorker.made.length).toBeLessThanOrEqual(1);
    await kept.close();
    expect(file().open).toBe(0);
  });

  it('is done without once it has ended, or cannot read', async () => {
    for (const fault of ['ends', 'fails'] as const) {
      FakeWorker.made = [];
      await open(true);
      for (let i = 0; i < 3; i++) await pass();
      const [worker] = FakeWorker.made;
      expect(worker!.reads).toBeGreaterThan(0);
      if (fault === 'ends') worker!.onerror!();
      else file().broken = 2;
      for (let i = 0; i < 4; i++) await pass();
      const { reads } = worker!;
      for (let i = 0; i < 3; i++) await pass();
      expect(worker!.reads).toBe(reads);
      await kept.close();
      // What a worker that has ended had open is closed by the browser.
      expect(file().open).toBe(1);
    }
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
