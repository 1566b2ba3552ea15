// The slider's stops: fine steps where a small model decides between pinning and streaming, coarse ones above.

import { MiB } from 'qsf';

/** In MiB, from less than any model can be given, which shows a refusal; each range goes up to `to` in steps of `step`. */
const FROM = 1.25;
const RANGES = [
  { to: 8, step: 0.25 },
  { to: 16, step: 1 },
  { to: 64, step: 4 },
  { to: 256, step: 16 },
  { to: 1024, step: 64 },
  { to: 4032, step: 256 },
];

/** Every budget that there is, in bytes, ascending. */
const stops: number[] = [];
let mib = FROM;
for (const { to, step } of RANGES) {
  for (; mib < to; mib += step) stops.push(mib * MiB);
}
stops.push(RANGES.at(-1)!.to * MiB);

/** What the built-in model is offered. */
export const FEW = stops.indexOf(64 * MiB);
/** What any other is. */
export const ALL = stops.length - 1;

/** The budget of a stop in bytes; one outside the slider is brought to its end. */
export function budgetAt(stop: number): number {
  return stops.at(Math.min(Math.max(stop, 0), ALL)) ?? 0;
}

/** The smallest stop that holds `bytes`; the last when none does. */
export function stopFor(bytes: number): number {
  const stop = stops.findIndex((budget) => budget >= bytes);
  return stop < 0 ? ALL : stop;
}
