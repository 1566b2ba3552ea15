// A model that this machine has. Nothing is fetched, and nothing is stored a second time.
import { QSFError } from '../errors.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from './source.js';

export abstract class LocalSource implements ByteSource {
  readonly size: number;
  readonly isWatched = false;
  readonly keeps = false;
  onLoaded: (() => void) | undefined;
  /** Bytes read so far. */
  protected bytes = 0;

  constructor(size: number) {
    this.size = size;
  }

  abstract read(piece: ReadPiece): Promise<void> | undefined;

  accepted(): void {}

  rejected(_offset: number, _size: number): void {}

  async keep(_pieces: readonly Piece[]): Promise<void> {}

  async restart(): Promise<void> {}

  stats(): SourceStats {
    return {
      network: 0,
      cache: 0,
      blob: this.bytes,
      requests: 0,
      cacheState: 'off',
      cachedBytes: 0,
      loaded: this.size,
    };
  }

  async close(): Promise<void> {}
}

/** Bytes in the worker's own memory, which are copied without waiting. */
export class BytesSource extends LocalSource {
  readonly #memory: Uint8Array;

  constructor(memory: Uint8Array) {
    super(memory.length);
    this.#memory = memory;
  }

  read({ offset, into }: ReadPiece): undefined {
    checkEnd('the model', this.size, offset, into.length);
    into.set(this.#memory.subarray(offset, offset + into.length));
    this.bytes += into.length;
  }
}

/** Throws truncated if `name`, of `size` bytes, ends before `wanted` bytes from `offset`. */
export function checkEnd(name: string, size: number, offset: number, wanted: number): void {
  const missing = offset + wanted - size;
  if (missing > 0) throw new QSFError('truncated', `${name} ends ${missing} bytes before ${offset + wanted}`);
}
