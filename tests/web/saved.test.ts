// A sequence as a file and back, between the engine and the page, and files by name in the private file system.
import './fair-channel.js';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { saved } from '../../web/src/page/saved.js';
import { findSaved, listSaved, removeSaved, storeSaved, storedFile } from '../../web/src/sources/saved-files.js';
import { restoreSequence, savedSequence } from '../../web/src/worker/saved.js';
import { fakeEngine } from './fake-engine.js';
import { crash, installFakeOpfs } from './fake-opfs.js';
import type { FakeFile, FakeFolder } from './fake-opfs.js';

const HEADER = 128;
const MESSAGES = JSON.stringify([{ role: 'user', content: 'Größe' }]);

const bytesOf = async (file: Blob) => new Uint8Array(await file.arrayBuffer());
/** The bytes of the fake's payload. */
const counting = (n: number) => Array.from({ length: n }, (_, i) => i & 0xff);

describe('a saved sequence', () => {
  it.each([1, 65_536, 100_000, 5_000_000])('has header, note and a rest of %i bytes', async (size) => {
    const { engine, instance } = fakeEngine();
    instance.saved = size;
    instance.length = 9;
    const file = savedSequence(engine, 0, MESSAGES);
    const note = new TextEncoder().encode(`{"messages":${MESSAGES}}`);
    expect(file.size).toBe(HEADER + note.length + size);
    const bytes = await bytesOf(file);
    expect(bytes.subarray(HEADER, HEADER + note.length)).toEqual(note);
    const rest = bytes.subarray(HEADER + note.length);
    expect(rest.every((byte, i) => byte === (i & 0xff))).toBe(true);
    if (size > 1_000_000) return;
    const restored = await restoreSequence(engine, 0, file);
    expect(restored).toEqual({ position: 9, sequence: 0, messages: JSON.parse(MESSAGES) as unknown });
    expect(instance.restored).toEqual([...counting(size), ...counting(size)]);
  });

  it('has the text that follows its tokens, and no note without anything to note', async () => {
    const { engine, instance } = fakeEngine();
    instance.saved = 10;
    expect(savedSequence(engine, 0, '').size).toBe(HEADER + 10);
    engine.rewind(0, 0, ' ca');
    const file = savedSequence(engine, 0, '');
    engine.rewind(0, 0);
    expect(await restoreSequence(engine, 0, file)).toEqual({ position: 0, sequence: 0 });
    expect(engine.rest(0)).toBe(' ca');
  });

  it('is refused as the engine says, and changes nothing', async () => {
    const { engine, instance } = fakeEngine();
    const file = savedSequence(engine, 0, '');
    engine.rewind(0, 0, 'rest');
    instance.refuse.restore = { code: 'mismatch', sentence: 'another model' };
    await expect(restoreSequence(engine, 0, file)).rejects.toMatchObject({
      code: 'mismatch',
      message: 'another model',
    });
    instance.refuse.save = { code: 'unsupported', sentence: 'not this one' };
    expect(() => savedSequence(engine, 0, '')).toThrow('not this one');
    expect(engine.rest(0)).toBe('rest');
  });

  it('is refused with a note that is damaged or is none', async () => {
    const { engine, instance } = fakeEngine();
    instance.saved = 10;
    const bytes = await bytesOf(savedSequence(engine, 0, MESSAGES));
    bytes[HEADER + 3]! ^= 1;
    await expect(restoreSequence(engine, 0, new Blob([bytes]))).rejects.toMatchObject({ code: 'bad_checksum' });
    for (const note of ['x', ']', '{"rest":1}', '{"messages":{}}', 'null']) {
      const text = new TextEncoder().encode(note);
      const file = new Blob([engine.beginSave(text, 0), text, Uint8Array.from(counting(10))]);
      await expect(restoreSequence(engine, 0, file), note).rejects.toMatchObject({ code: 'bad_input' });
    }
    expect(instance.restored).toEqual([]);
  });
});

describe('a stored sequence', () => {
  let top: FakeFolder;
  let now = 1000;

  beforeEach(() => {
    now = 1000;
    top = installFakeOpfs(() => now);
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  const blob = (text: string, size = 100) => new Blob([text.padEnd(size)]);
  const textOf = async (name: string) => (await (await findSaved(name))?.text())?.trim();
  const names = () => [...((top.inside.get('qsf-saved') as FakeFolder | undefined)?.inside.keys() ?? [])];

  it('is found by its name, listed and removed', async () => {
    expect(await listSaved()).toEqual([]);
    expect(await saved.get('a')).toBeUndefined();
    await storeSaved('a/b %', blob('one'));
    now = 2000;
    await storeSaved('other', blob('two', 300_000));
    expect(await listSaved()).toEqual([
      { name: 'a/b %', bytes: 100, saved: 1000 },
      { name: 'other', bytes: 300_000, saved: 2000 },
    ]);
    expect(await textOf('a/b %')).toBe('one');
    expect((await (await storedFile('other')).text()).trim()).toBe('two');
    await saved.remove('other');
    await saved.remove('other');
    await expect(storedFile('other')).rejects.toMatchObject({ code: 'io_error' });
    expect((await saved.list()).map(({ name }) => name)).toEqual(['a/b %']);
    await removeSaved('a/b %');
    expect(names()).toEqual([]);
  });

  it('replaces the earlier one of its name', async () => {
    for (const text of ['one', 'two', 'three']) await storeSaved('a', blob(text));
    expect(await textOf('a')).toBe('three');
    expect(names()).toEqual(['a.3.qsfs']);
  });

  it('stays when there is no room for the next one', async () => {
    await storeSaved('a', blob('one'));
    for (const full of ['throws', 'stores a part'] as const) {
      Object.assign(top.disk, { quota: 5000, full });
      await expect(storeSaved('a', blob('two', 10_000))).rejects.toMatchObject({ code: 'io_error' });
      expect(await textOf('a')).toBe('one');
      expect(names()).toEqual(['a.1.qsfs']);
    }
    top.disk.quota = Infinity;
    await storeSaved('a', blob('two', 10_000));
    expect(await textOf('a')).toBe('two');
  });

  it('is whole, the earlier one or the next, wherever the browser is killed', async () => {
    const size = 200_000; // several writes
    await storeSaved('a', blob('one', size));
    const begun = top.disk.changes;
    await storeSaved('a', blob('two', size));
    const steps = top.disk.changes - begun;
    expect(steps).toBeGreaterThan(4);
    for (let step = 0; step < steps; step++) {
      for (const lasts of [() => true, () => false, (_: string, nth: number) => nth % 2 === 0]) {
        top = installFakeOpfs(() => now);
        await storeSaved('a', blob('one', size));
        top.disk.killedAt = top.disk.changes + step;
        await storeSaved('a', blob('two', size)).catch(() => {});
        crash(top, lasts);
        const file = await findSaved('a');
        expect(file!.size).toBe(size);
        expect(['one', 'two']).toContain((await file!.text()).trim());
        await storeSaved('a', blob('three', size));
        expect(await textOf('a')).toBe('three');
        expect(names()).toHaveLength(1);
      }
    }
  });

  it('is refused without a private file system, and under a name that is none', async () => {
    vi.stubGlobal('navigator', {});
    await expect(storeSaved('a', blob('one'))).rejects.toMatchObject({ code: 'unsupported_host' });
    expect(await saved.list()).toEqual([]);
    for (const name of ['', 'x'.repeat(61), 7 as unknown as string]) {
      await expect(saved.get(name)).rejects.toMatchObject({ code: 'bad_argument' });
    }
  });

  it('is no other file of the folder', async () => {
    await storeSaved('a', blob('one'));
    const folder = top.inside.get('qsf-saved') as FakeFolder;
    for (const name of ['x', 'b.qsfs', 'b.x.qsfs']) await folder.getFileHandle(name, { create: true });
    expect((await listSaved()).map(({ name }) => name)).toEqual(['a']);
    expect((folder.inside.get('a.1.qsfs') as FakeFile).open).toBe(0);
  });
});
