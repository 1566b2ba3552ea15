// The speed of this machine, as it was in the last text whose weights all stayed in memory. It is kept for later visits.

import type { Stats } from 'qsf';

const KEY = 'qsf.rate';
/** Bytes of weights whose speed is that of a machine's memory. Smaller models are in its caches. */
const LEAST_BYTES = 32e6;
/** Tokens of a text that has a speed. */
const LEAST_TOKENS = 12;

/** Notes the bytes of weights for each second of the last text. */
export function noteRate({ model, plan, generation }: Stats): void {
  const speed = generation?.tokensPerSecond;
  const isResident = plan.segments === plan.pinnedSegments;
  if (!isResident || speed === undefined || model.weightBytes < LEAST_BYTES) return;
  if (generation!.tokens.length < LEAST_TOKENS) return;
  try {
    localStorage.setItem(KEY, String(model.weightBytes * speed));
  } catch {
    // Without storage there is no expectation.
  }
}

/** Returns the megabytes of weights for each second of the last text, a whole number; undefined without one. */
export function computeRate(): number | undefined {
  try {
    const rate = Math.round(Number(localStorage.getItem(KEY)) / 1e6);
    return rate > 0 ? rate : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the expected tokens for each second of a model whose weights stay in memory; undefined without a rate. */
export function expectedSpeed(weightBytes: number): number | undefined {
  const rate = computeRate();
  return rate === undefined ? undefined : (1e6 * rate) / weightBytes;
}
