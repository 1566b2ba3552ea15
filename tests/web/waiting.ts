// Waiting for events that a test has set off.
import { expect, vi } from 'vitest';

import { tick } from '../../web/src/worker/tick.js';

/** A turn of the event loop and more. */
export const pause = (ms = 1) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Turns of the event loop: more than any chain of messages and promises in the package has. */
const TURNS = 40;

/** Expects that `holds` while everything that is due comes: messages, timers and promises, in many turns of the event loop. */
export async function stays(holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    expect(holds(), `in turn ${String(turn)}`).toBe(true);
    await tick();
    await pause(0);
  }
  expect(holds()).toBe(true);
}

/** Waits until `done`; the test's own time limit ends it otherwise. */
export async function until(done: () => boolean): Promise<void> {
  while (!done()) await pause();
}

/** Makes timers end after 30 ms at most, from now on. Before, a worker on a busy machine would count as one that is silent. */
export function shortenTimers(): void {
  const { setTimeout: later } = globalThis;
  vi.stubGlobal('setTimeout', (work: () => void, ms = 0) => later(work, Math.min(ms, 30)));
}
