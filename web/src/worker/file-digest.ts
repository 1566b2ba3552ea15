// The SHA-256 of a whole model file, computed by the engine's module.
import { KiB, MiB } from '../constants.js';
import type { ByteSource } from '../sources/source.js';
import type { Engine } from '../wasm/engine.js';

/** Bytes of a read. */
const BLOCK = MiB;
/** Reads under way, so that a source can merge them into one request. */
const READS = 4;
/** Bytes that the module gets in a call. */
const STAGED = 32 * KiB;

/**
 * Reads all bytes of a source in order. The source's accepted() is left to the caller. The engine must have no reads
 * under way.
 */
export async function fileDigest(source: ByteSource, engine: Engine): Promise<string> {
  const { size } = source;
  const blocks = Array.from({ length: Math.min(READS, Math.ceil(size / BLOCK)) }, () => new Uint8Array(BLOCK));
  const begin = (offset: number) => {
    const into = blocks[(offset / BLOCK) % READS]!.subarray(0, size - offset);
    const done = Promise.resolve(source.read({ offset, into, crc: undefined }));
    done.catch(() => {}); // an earlier one may have failed
    return { into, done };
  };
  const reads = [];
  for (let offset = 0; offset < size && reads.length < READS; offset += BLOCK) reads.push(begin(offset));
  for (let offset = 0; offset < size; offset += BLOCK) {
    const { into, done } = reads.shift()!;
    await done;
    for (let at = 0; at < into.length; at += STAGED) engine.addToDigest(into.subarray(at, at + STAGED));
    const next = offset + READS * BLOCK;
    if (next < size) reads.push(begin(next));
  }
  return engine.session.digest();
}
