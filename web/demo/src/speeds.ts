// The speeds of a story from moment to moment. Their clock is the engine's time between tokens, which their mean also
// counts. With the page's own clock, a short story would be complete at the first update, and a slow one would stand
// still between two tokens.

import type { GenerationStats, Stats } from 'qsf';

/**
 * The shortest stretch that has a speed, in milliseconds. Shorter ones are joined, because single tokens vary by
 * chance.
 */
const SHORTEST = 100;
/** Stretches that are kept. */
const LAST = 150;

interface Sample {
  tokens: number;
  /** Milliseconds of generation since the first token. */
  at: number;
}

export class Speeds {
  #samples: Sample[] = [{ tokens: 1, at: 0 }];

  /** Notes the progress of a generation. */
  add({ tokens: { length: tokens }, tokensPerSecond }: GenerationStats): void {
    if (tokensPerSecond === undefined) return;
    const at = (1000 * (tokens - 1)) / tokensPerSecond;
    const last = this.#samples.at(-1)!;
    if (tokens <= last.tokens || at <= last.at) return;
    if (this.#lastIsShort()) this.#samples.pop();
    this.#samples.push({ tokens, at });
    if (this.#samples.length > LAST + 1) this.#samples.shift();
  }

  /** Returns the tokens per second of each stretch, oldest first; empty before the second token. */
  all(): number[] {
    const speeds = this.#samples.slice(1).map(({ tokens, at }, i) => {
      const before = this.#samples[i]!;
      return (1000 * (tokens - before.tokens)) / (at - before.at);
    });
    return speeds.length > 1 && this.#lastIsShort() ? speeds.slice(0, -1) : speeds;
  }

  #lastIsShort(): boolean {
    const [before, last] = this.#samples.slice(-2);
    return last !== undefined && last.at - before!.at < SHORTEST;
  }
}

/** Returns the bytes that the engine read for each token since it had read `before`; undefined without tokens. */
export function bytesPerToken(before: number, { io, generation }: Stats): number | undefined {
  const made = generation?.tokens.length ?? 0;
  return made > 0 ? Math.round((io.engine - before) / made) : undefined;
}
