// The slider's stops. Steps are small at budgets for which a small model pins some segments and streams others.

import { MiB } from 'qsf';

/** In MiB. The first budget is too small for every model, to show a refusal. Each range ends at `to`. */
const FROM = 1.25;
const RANGES = [
  { to: 8, step: 0.25 },
  { to: 16, step: 1 },
  { to: 64, step: 4 },
  { to: 256, step: 16 },
  { to: 1024, step: 64 },
  { to: 4032, step: 256 },
];

/** All budgets, in bytes, ascending. */
const stops: number[] = [];
let mib = FROM;
for (const { to, step } of RANGES) {
  for (; mib < to; mib += step) stops.push(mib * MiB);
}
stops.push(RANGES.at(-1)!.to * MiB);

/** The last stop for the built-in model. */
export const FEW = stops.indexOf(64 * MiB);
/** The last stop for other models. */
export const ALL = stops.length - 1;

/** Returns the budget of a stop in bytes. A stop outside the slider becomes its nearest end. */
export function budgetAt(stop: number): number {
  return stops.at(Math.min(Math.max(stop, 0), ALL)) ?? 0;
}

/** Returns the smallest stop with at least `bytes`, or the last stop. */
export function stopFor(bytes: number): number {
  const stop = stops.findIndex((budget) => budget >= bytes);
  return stop < 0 ? ALL : stop;
}
