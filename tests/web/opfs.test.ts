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
    const read = (into: Uint8Array) => {
      views.push(into);
      return into.length;
    };
    expect(new SyncFile({ mode: 'readwrite', read } as never).read(shared, 0)).toBe(4);
    expect(views).toEqual([shared]);
    expect(views[0]!.buffer).toBe(shared.buffer);
  });

  it.each(['private', 'shared', 'shared that is refused'])('goes on where %s memory was moved in part', (kind) => {
    const memory = new Uint8Array(kind === 'private' ? new ArrayBuffer(10) : new SharedArrayBuffer(10));
    const bytes = [...'0123456789'].map(Number);
    let moves = 0;
    const file = new SyncFile({
      read(into: Uint8Array, { at }: { at: number }) {
        if (kind === 'shared that is refused' && into.buffer === memory.buffer) throw new TypeError('refused');
        moves++;
        const got = bytes.slice(at, at + Math.min(3, into.length));
        into.set(got);
        return got.length;
      },
      write(from: Uint8Array, { at }: { at: number }) {
        moves++;
        const some = from.subarray(0, at < 8 ? 3 : 0);
        bytes.splice(at, some.length, ...some);
        return some.length;
      },
    } as never);
    expect(file.read(memory, 0)).toBe(10);
    expect(Array.from(memory)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(moves).toBe(4);
    // The file ends: one more read gives nothing, and what is after it is left as it was.
    expect(file.read(memory, 5)).toBe(5);
    expect(Array.from(memory)).toEqual([5, 6, 7, 8, 9, 5, 6, 7, 8, 9]);
    expect(moves).toBe(4 + 3);
    // There is no room beyond 9.
    memory.fill(42);
    expect(file.write(memory, 2)).toBe(6);
    expect(bytes).toEqual([0, 1, 42, 42, 42, 42, 42, 42, 8, 9]);
    expect(moves).toBe(7 + 3);
  });

  it('copies any number of bytes of shared memory by one small block', () => {
    const size = 2.5 * 1024 * 1024;
    const sizes = new Set<number>();
    const file = new Uint8Array(size).map((_, i) => i % 251);
    const strict = new SyncFile({
      read(into: Uint8Array, { at }: { at: number }) {
        if (into.buffer instanceof SharedArrayBuffer) throw new TypeError('shared memory is not allowed');
        sizes.add(into.buffer.byteLength);
        const got = file.subarray(at, at + into.length);
        into.set(got);
        return got.length;
      },
      write(from: Uint8Array, { at }: { at: number }) {
        sizes.add(from.buffer.byteLength);
        file.set(from, at);
        return from.length;
      },
    } as never);
    const shared = new Uint8Array(new SharedArrayBuffer(size));
    expect(strict.read(shared, 0)).toBe(size);
    expect(Buffer.compare(shared, file)).toBe(0);
    expect(strict.read(shared, 100)).toBe(size - 100);
    shared.fill(7);
    expect(strict.write(shared, 0)).toBe(size);
    expect(file.every((byte) => byte === 7)).toBe(true);
    expect([...sizes]).toEqual([1024 * 1024]);
  });
});
