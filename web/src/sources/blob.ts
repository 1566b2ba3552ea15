// A File or Blob, read slice by slice.
import { MiB } from '../constants.js';
import { QSFError } from '../errors.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';

export class BlobSource implements ByteSource {
  readonly size: number;
  onLoaded: (() => void) | undefined;
  readonly #reader: BlockReader;
  #bytes = 0;

  constructor(blob: Blob) {
    this.#reader = new BlockReader(blob);
    this.size = blob.size;
  }

  async read({ offset, into }: ReadPiece): Promise<void> {
    await this.#reader.read(offset, into);
    this.#bytes += into.length;
  }

  accepted(): void {}

  rejected(): void {}

  async keep(_pieces: readonly Piece[]): Promise<void> {}

  async restart(): Promise<void> {}

  stats(): SourceStats {
    return {
      network: 0,
      cache: 0,
      blob: this.#bytes,
      requests: 0,
      cacheState: 'off',
      cachedBytes: 0,
      loaded: this.size,
    };
  }

  async close(): Promise<void> {}
}

const BLOCK = MiB;
/** Blocks held: two that a read lies across, the next one, and one more for a second reader's place. */
const HELD = 4;

/**
 * Reads a blob in blocks, the next one ahead of need: asking for a slice costs about a millisecond whatever its size.
 * Errors are io_error when the file under it is gone or was changed, truncated when it is shorter.
 */
export class BlockReader {
  readonly #blob: Blob;
  /** In order of use, the last used at the end. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  constructor(blob: Blob) {
    this.#blob = blob;
  }

  /** Fills `into` from `offset`. */
  async read(offset: number, into: Uint8Array): Promise<void> {
    if (offset > this.#blob.size - into.length) {
      const missing = offset + into.length - this.#blob.size;
      throw new QSFError('truncated', `The file ends ${missing} bytes before ${offset + into.length}.`);
    }
    const end = offset + into.length;
    for (let at = offset; at < end;) {
      const index = Math.floor(at / BLOCK);
      const begin = at - index * BLOCK;
      const block = await this.#block(index);
      const part = block.subarray(begin, begin + end - at);
      into.set(part, at - offset);
      at += part.length;
    }
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
      return new Uint8Array(await this.#blob.slice(offset, offset + BLOCK).arrayBuffer());
    } catch (cause) {
      this.#blocks.delete(index);
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new QSFError('io_error', `The file could not be read at ${offset}: ${why}`, { cause });
    }
  }
}
