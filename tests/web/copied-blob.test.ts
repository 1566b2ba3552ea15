// A File whose streamed bytes are copied into the browser's own file system, as far as it lets them.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { CopiedBlob } from '../../web/src/sources/copied-blob.js';
import { openCopy } from '../../web/src/sources/model-cache.js';
import { keepsFiles } from '../../web/src/sources/opfs.js';
import { installFakeOpfs } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';
import { noise, same } from './fake-server.js';
import { pause } from './waiting.js';

const SIZE = 1_000_000;
const PIECE = 50_000;
const bytes = noise(SIZE, 3);
const blob = new Blob([bytes]);

let top: FakeFolder;
let warnings: string[];
let opened: CopiedBlob | undefined;
beforeEach(() => {
  top = installFakeOpfs(Date.now);
  warnings = [];
});
afterEach(async () => {
  await opened?.close();
  opened = undefined;
  vi.unstubAllGlobals();
});

const open = (most = Infinity) => (opened = new CopiedBlob(blob, most, (sentence) => warnings.push(sentence)));
const copies = () => [...((top.inside.get('qsf-copies') as FakeFolder | undefined)?.inside.keys() ?? [])];

/** Reads the pieces from `begin` on as a pass does, and compares them. Returns the bytes that came from the copy. */
async function pass(source: CopiedBlob, begin = 0): Promise<number> {
  const before = source.stats().cache;
  for (let offset = begin; offset < SIZE; offset += PIECE) {
    const into = new Uint8Array(PIECE);
    await source.read({ offset, into, crc: undefined });
    await pause(); // as a worker, which answers messages
    expect(same(into, bytes.subarray(offset, offset + PIECE)), String(offset)).toBe(true);
  }
  return source.stats().cache - before;
}

it('comes from the copy after two passes, and what is read once is not copied', async () => {
  const source = open();
  expect(await pass(source)).toBe(0);
  expect(copies()).toEqual([]);
  await pass(source, SIZE / 2); // the copy is being opened meanwhile
  await pass(source, SIZE / 2);
  const slice = vi.spyOn(blob, 'slice');
  expect(await pass(source, SIZE / 2)).toBe(SIZE / 2);
  expect(slice).not.toHaveBeenCalled();
  slice.mockRestore();
  expect(warnings).toEqual([]);
});

it('is copied up to a limit', async () => {
  const source = open(4 * PIECE);
  for (let i = 0; i < 3; i++) await pass(source);
  expect(await pass(source)).toBe(4 * PIECE);
  expect(warnings).toEqual([]);
});

it('is read as before where the browser has no more room, and says so once', async () => {
  top.disk.quota = 5 * PIECE;
  const source = open();
  for (let i = 0; i < 3; i++) await pass(source);
  const last = await pass(source);
  expect(last).toBeGreaterThan(0);
  expect(last).toBeLessThanOrEqual(5 * PIECE);
  expect(warnings).toEqual([expect.stringContaining('keeps no faster copy')]);
});

it('is read as before where the browser refuses the copy', async () => {
  navigator.storage.getDirectory = () => Promise.reject(new DOMException('no', 'SecurityError'));
  const source = open();
  for (let i = 0; i < 3; i++) expect(await pass(source)).toBe(0);
  expect(warnings).toHaveLength(1);
});

it('is read from the file where the copy is wrong or cannot be read', async () => {
  const source = open();
  for (let i = 0; i < 3; i++) await pass(source);
  source.rejected(0, PIECE);
  expect(await pass(source)).toBe(SIZE - PIECE);
  const model = top.disk.files.find(({ name }) => name === 'model')!;
  model.broken = 1;
  expect(await pass(source)).toBe(0);
  model.broken = 0;
  expect(await pass(source)).toBe(0); // copied again
  expect(await pass(source)).toBe(SIZE);
});

it('is not kept where the copy is read more slowly than the file, as in private windows', async () => {
  let clock = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const slice = vi.spyOn(blob, 'slice').mockImplementation((...place) => {
    clock += 1;
    return Blob.prototype.slice.apply(blob, place);
  });
  const source = open();
  for (let i = 0; i < 3; i++) await pass(source);
  const model = top.disk.files.find(({ name }) => name === 'model')!;
  model.onRead = () => void (clock += 4);
  for (let i = 0; i < 3; i++) await pass(source);
  await vi.waitFor(() => expect(copies()).toEqual([]));
  expect(await pass(source)).toBe(0);
  expect(warnings.filter((sentence) => sentence.includes('keeps no faster copy'))).toHaveLength(1);
  slice.mockRestore();
  vi.mocked(performance.now).mockRestore();
});

it('leaves nothing, and removes what an ended worker left, but no copy in use', async () => {
  const mine = (await openCopy(SIZE))!;
  const [used] = copies();
  // Its worker has ended: nobody holds the lock.
  await (top.inside.get('qsf-copies') as FakeFolder).getDirectoryHandle('copy-left', { create: true });
  const other = (await openCopy(SIZE))!;
  expect(copies()).toHaveLength(2);
  expect(copies()).toContain(used);
  expect(copies()).not.toContain('copy-left');
  for (const one of [mine, other]) await one.close();
  expect(copies()).toEqual([]);
  const source = open();
  for (let i = 0; i < 3; i++) await pass(source);
  expect(copies()).toHaveLength(1);
  await source.close();
  expect(copies()).toEqual([]);
});

it('is made where there are locks and synchronous files', () => {
  expect(keepsFiles()).toBe(true);
  vi.stubGlobal('navigator', {});
  expect(keepsFiles()).toBe(false);
});
