// Chunks of a response that were used. A browser collects them when it pleases, and hundreds of megabytes may lie about
// before it does; what comes next waits until there are few.
import { MiB } from '../constants.js';
import { tick } from '../tick.js';

/** Bytes that may lie about. */
const FEW = 6 * MiB;
/** How often the browser is told before a chunk goes on without, and how many chunks in a row do before nobody waits any more. */
const TIMES = 20;
const REFUSALS = 10;
/** Memory that is asked for and never touched, so that it is never there: it tells the browser that there is much to collect. */
const PRESSURE = [8 * MiB, 8 * MiB, 8 * MiB, 8 * MiB];

export class Litter {
  bytes = 0;
  #refusals = 0;
  readonly #collected = new FinalizationRegistry<number>((size) => (this.bytes -= size));

  /** Notes a chunk that nobody will use any more, and waits while too many of them lie about. */
  async add({ buffer }: Uint8Array<ArrayBuffer>): Promise<void> {
    this.bytes += buffer.byteLength;
    this.#collected.register(buffer, buffer.byteLength);
    if (this.bytes > FEW && this.#refusals < REFUSALS) await this.#collect();
  }

  async #collect(): Promise<void> {
    for (let i = 0; i < TIMES; i++) {
      for (const size of PRESSURE) new ArrayBuffer(size);
      await tick();
      if (this.bytes > FEW) continue;
      this.#refusals = 0;
      return;
    }
    this.#refusals++;
  }
}
