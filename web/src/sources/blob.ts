// A File or Blob, read slice by slice. The browser needs about a millisecond for a slice in addition to its bytes, so
// slices are large and are requested ahead of need.
import { KiB, MiB } from '../constants.js';
import { QSFError, messageOf } from '../errors.js';
import { ReadAhead } from './ahead.js';
import { LocalSource, checkEnd } from './local.js';
import type { ReadPiece } from './source.js';

/**
 * Bytes of a run: a browser reads slices of this size at twice the rate of slices of 1 MiB. Three of them are in
 * memory.
 */
const RUN = 4 * MiB;
/** Bytes between two pieces that cost less to read than a second slice. */
const GAP = 256 * KiB;

export class BlobSource extends LocalSource {
  /** Reads the pieces whose order is not known yet. */
  readonly #blocks: BlockReader;
  readonly #ahead: ReadAhead;

  constructor(blob: Blob) {
    super(blob.size);
    this.#blocks = new BlockReader(blob);
    this.#ahead = new ReadAhead({ gap: GAP, run: RUN, fetch: (offset, { length }) => slice(blob, offset, length) });
  }

  read({ offset, into }: ReadPiece): Promise<void> | undefined {
    const count = () => void (this.bytes += into.length);
    const isHere = this.#ahead.read(offset, into);
    if (isHere === true) return count();
    return Promise.resolve(isHere)
      .then((came) => (came ? undefined : this.#blocks.read(offset, into)))
      .then(count);
  }
}

const BLOCK = MiB;
/** Blocks in memory: two that a read spans, the next one, and one more for a second reader's position. */
const HELD = 4;

/** Reads a blob in blocks, the next one ahead of need. Its errors are those of slice(). */
export class BlockReader {
  readonly #blob: Blob;
  /** In order of use, the last used at the end. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  constructor(blob: Blob) {
    this.#blob = blob;
  }

  /** Fills `into` from `offset`. Takes all its blocks at once, so that reads under way do not evict each other's. */
  async read(offset: number, into: Uint8Array): Promise<void> {
    checkEnd('the file', this.#blob.size, offset, into.length);
    const end = offset + into.length;
    const copied: Promise<void>[] = [];
    for (let at = offset; at < end;) {
      const index = Math.floor(at / BLOCK);
      const begin = at - index * BLOCK;
      const size = Math.min(BLOCK - begin, end - at);
      const to = at - offset;
      copied.push(this.#block(index).then((block) => into.set(block.subarray(begin, begin + size), to)));
      at += size;
    }
    await Promise.all(copied);
  }

  #block(index: number): Promise<Uint8Array> {
    const block = this.#take(index);
    if ((index + 1) * BLOCK < this.#blob.size) this.#take(index + 1).catch(() => {});
    return block;
  }

  #take(index: number): Promise<Uint8Array> {
    const block = this.#blocks.get(index) ?? this.#slice(index);
    this.#blocks.delete(index);
    this.#blocks.set(index, block);
    for (const oldest of this.#blocks.keys()) if (this.#blocks.size > HELD) this.#blocks.delete(oldest);
    return block;
  }

  async #slice(index: number): Promise<Uint8Array> {
    const offset = index * BLOCK;
    try {
      return await slice(this.#blob, offset, Math.min(BLOCK, this.#blob.size - offset));
    } catch (error) {
      this.#blocks.delete(index);
      throw error;
    }
  }
}

/**
 * Returns `size` bytes of a blob. Rejects with io_error if its file is gone or was changed, with truncated if fewer
 * bytes came.
 */
async function slice(blob: Blob, offset: number, size: number): Promise<Uint8Array<ArrayBuffer>> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = new Uint8Array(await blob.slice(offset, offset + size).arrayBuffer());
  } catch (cause) {
    const why = messageOf(cause);
    throw new QSFError('io_error', `the file could not be read at ${offset}: ${why}`, { cause });
  }
  checkEnd('the file', offset + bytes.length, offset, size);
  return bytes;
}
