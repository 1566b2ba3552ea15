// Memory that is used again and again, because a browser collects what is thrown away only when there is much of it.
import { MiB } from '../constants.js';

/** Blocks that wait for their next use: as many bytes as requests have in flight. */
const HELD = 8;

export class Blocks {
  readonly #free: ArrayBuffer[] = [];

  /** So many bytes of any content. */
  take(size: number): Uint8Array<ArrayBuffer> {
    const at = this.#free.findIndex(({ byteLength }) => byteLength >= size);
    const block = at < 0 ? new ArrayBuffer(Math.max(size, MiB)) : this.#free.splice(at, 1)[0]!;
    return new Uint8Array(block, 0, size);
  }

  /** Bytes that nobody uses any more. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    if (this.#free.length < HELD) this.#free.push(buffer);
  }
}
