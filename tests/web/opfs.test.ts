import { describe, expect, it } from 'vitest';

import { SyncFile } from '../../web/src/sources/opfs.js';

/** A file in memory that refuses bytes which are shared, as some browsers do. */
function strictFile(bytes: number[], told: { refused: number } = { refused: 0 }) {
  const refuse = (view: Uint8Array) => {
    if (!(view.buffer instanceof SharedArrayBuffer)) return;
    told.refused++;
    throw new TypeError('shared memory is not allowed');
  };
  return new SyncFile({
    read(into, { at }) {
      refuse(into);
      const got = bytes.slice(at, at + into.length);
      into.set(got);
      return got.length;
    },
    write(from, { at }) {
      refuse(from);
      bytes.splice(at, from.length, ...from);
      return from.length;
    },
    truncate: (size) => void (bytes.length = size),
    getSize: () => bytes.length,
    flush: () => undefined,
    close: () => undefined,
  });
}

describe('SyncFile', () => {
  const memories = { private: new ArrayBuffer(16), shared: new SharedArrayBuffer(16) };
  for (const [kind, buffer] of Object.entries(memories)) {
    it(`reads into and writes from ${kind} memory`, () => {
      const memory = new Uint8Array(buffer);
      const file = strictFile([1, 2, 3, 4, 5, 6, 7]);
      expect(file.read(memory.subarray(4, 8), 1)).toBe(4);
      expect(Array.from(memory)).toEqual([0, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0]);
      expect(file.write(memory.subarray(5, 7), 0)).toBe(2);
      // What lies behind the end of the file is left as it was.
      expect(file.read(memory.subarray(0, 3), 6)).toBe(1);
      expect(Array.from(memory.subarray(0, 6))).toEqual([7, 0, 0, 0, 2, 3]);
      expect(file.read(memory.subarray(0, 7), 0)).toBe(7);
      expect(Array.from(memory.subarray(0, 7))).toEqual([3, 4, 3, 4, 5, 6, 7]);
    });
  }

  it('asks once whether shared memory can be read into, and does where it can', () => {
    const told = { refused: 0 };
    const shared = new Uint8Array(new SharedArrayBuffer(4));
    const file = strictFile([1, 2, 3, 4], told);
    for (let i = 0; i < 3; i++) file.read(shared, 0);
    expect(told.refused).toBe(1);
    expect(Array.from(shared)).toEqual([1, 2, 3, 4]);
    const views: Uint8Array[] = [];
    const lenient = { mode: 'readwrite', read: (into: Uint8Array) => views.push(into) };
    new SyncFile(lenient as never).read(shared, 0);
    expect(views).toEqual([shared]);
    expect(views[0]!.buffer).toBe(shared.buffer);
  });
});
