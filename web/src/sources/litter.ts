// Chunks of a response that were used. A browser collects them when it pleases, and hundreds of megabytes may lie about
// before it does; what comes next waits until there are few.
import { MiB } from '../constants.js';
import { tick } from '../tick.js';

/** Bytes that may lie about. */
const FEW = 6 * MiB;
/** How often the browser is told before a chunk goes on without, and how many chunks in a row do before fewer wait. */
const TIMES = 20;
const REFUSALS = 10;
/** Bytes that come before it is told again then, twice as many each time, at most. */
const PAUSE = [8 * MiB, 64 * MiB] as const;
/** Memory that is asked for and never touched, so that it is never there: it tells the browser that there is much to collect. */
const PRESSURE = [8 * MiB, 8 * MiB, 8 * MiB, 8 * MiB];

export class Litter {
  bytes = 0;
  #refusals = 0;
  #limit = FEW;
  #pause: number = PAUSE[0];
  readonly #collected = new FinalizationRegistry<number>((size) => (this.bytes -= size));

  /** Notes a chunk that nobody will use any more, and waits while too many of them lie about. */
  async add({ buffer }: Uint8Array<ArrayBuffer>): Promise<void> {
    this.bytes += buffer.byteLength;
    this.#collected.register(buffer, buffer.byteLength);
    if (this.bytes > this.#limit) await this.#collect();
  }

  async #collect(): Promise<void> {
    for (let i = 0; i < TIMES; i++) {
      for (const size of PRESSURE) new ArrayBuffer(size);
      await tick();
      if (this.bytes > FEW) continue;
      this.#refusals = 0;
      this.#limit = FEW;
      this.#pause = PAUSE[0];
      return;
    }
    if (++this.#refusals < REFUSALS) return;
    this.#limit = this.bytes + this.#pause;
    this.#pause = Math.min(2 * this.#pause, PAUSE[1]);
  }
}
