// The progress of an opening, reported to the page ten times a second at most.
import type { ByteSource } from '../sources/source.js';
import type { Progress, Retry } from '../progress-types.js';

/** The part of a progress that the plan gives. */
export type Planned = Pick<Progress, 'plan' | 'expected'>;

/** Least milliseconds between two reports to the page. */
export const REPORT_INTERVAL = 100;
/** Milliseconds over which the rate is a mean. With more, it is steadier and follows a change later. */
const SMOOTHING = 4000;

export class ProgressReport {
  readonly #tell: (progress: Progress) => void;
  #source: ByteSource | undefined;
  #phase: Progress['phase'] = 'open';
  #retry: Retry | undefined;
  #planned: Planned = {};
  #last = -Infinity;
  /** Bytes that were present at a time, since when the rate is measured; and the rate in bytes for a millisecond. */
  #seen: { bytes: number; at: number } | undefined;
  #rate: number | undefined;

  constructor(tell: (progress: Progress) => void) {
    this.#tell = tell;
  }

  /** Reports the source's bytes from now on. */
  watch(source: ByteSource): void {
    this.#source = source;
    source.onLoaded = () => {
      this.#retry = undefined;
      this.#report(false);
    };
  }

  /** Begins a phase. The rate of a download is measured anew. */
  begin(phase: Progress['phase'], planned = this.#planned): void {
    this.#planned = planned;
    this.#phase = phase;
    this.#seen = this.#rate = undefined;
    this.#report(true);
  }

  /** Reports that the server is asked again. It holds until bytes arrive. */
  retries(retry: Retry): void {
    this.#retry = retry;
    this.#report(true);
  }

  #report(always: boolean): void {
    const now = performance.now();
    if (!always && now - this.#last < REPORT_INTERVAL) return;
    this.#last = now;
    const { loaded, network, cache } = this.#source?.stats() ?? { loaded: 0, network: 0, cache: 0 };
    const total = this.#source?.size ?? 0;
    if (this.#phase === 'download') this.#measure(loaded, now);
    const rate = this.#rate === undefined ? undefined : this.#rate * 1000;
    this.#tell({
      ...{ phase: this.#phase, loaded, total, network, cache },
      ...(rate !== undefined && rate > 0 && { rate, secondsLeft: Math.max(0, total - loaded) / rate }),
      ...(this.#retry && { retry: this.#retry }),
      ...this.#planned,
    });
  }

  /** Adds the bytes since the last report to the rate, with a weight that grows with the time since then. */
  #measure(bytes: number, now: number): void {
    const seen = this.#seen;
    if (seen && now <= seen.at) return;
    this.#seen = { bytes, at: now };
    if (!seen || (this.#rate === undefined && bytes <= seen.bytes)) return;
    const ms = now - seen.at;
    const rate = Math.max(0, bytes - seen.bytes) / ms;
    const old = this.#rate ?? rate;
    this.#rate = old + (rate - old) * (1 - Math.exp(-ms / SMOOTHING));
  }
}
