// Memory that is used again and again, because a browser frees unused memory only when there is much of it.
import { MiB } from '../constants.js';
import { QSFError } from '../errors.js';

/** The most bytes of a block: those of the largest segment, layout.h's kMaxSegmentRaw. */
export const LARGEST = 16 * MiB;
/** The most bytes that wait for their next use: as many as requests have in flight. */
const HELD = 8 * MiB;

export class Blocks {
  readonly #usual: number;
  readonly #free: ArrayBuffer[] = [];

  /** New blocks have at least `usual` bytes, so that most fit the next use. */
  constructor(usual = MiB) {
    this.#usual = usual;
  }

  /**
   * Returns `size` bytes of any content. Throws out_of_memory for more than LARGEST, and if the browser refuses them.
   */
  take(size: number): Uint8Array<ArrayBuffer> {
    const at = this.#free.findIndex(({ byteLength }) => byteLength >= size);
    return new Uint8Array(at < 0 ? this.#make(size) : this.#free.splice(at, 1)[0]!, 0, size);
  }

  /** Takes back bytes that nobody uses any more. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    const held = this.#free.reduce((sum, { byteLength }) => sum + byteLength, buffer.byteLength);
    if (held <= HELD) this.#free.push(buffer);
  }

  #make(size: number): ArrayBuffer {
    if (size > LARGEST) throw refused(`a part of the model has ${size} bytes; at most ${LARGEST} are received at once`);
    try {
      return new ArrayBuffer(Math.max(size, this.#usual));
    } catch (cause) {
      throw refused(`the browser refused ${size} bytes to receive a part of the model`, cause);
    }
  }
}

const refused = (sentence: string, cause?: unknown) => new QSFError('out_of_memory', sentence, { cause });
