// The page's model as the modes of the page use it: stories and conversations.

import type { QSF } from 'qsf';
import { drawFigures } from './figures.js';
import type { Place } from './notice.js';
import { noteRun } from './runs.js';
import { beginWork, drawWork } from './work.js';

/** Milliseconds between updates of the figures while a text is written. */
const REFRESH = 200;

export interface Stage {
  /** Returns the model after an opening that is under way. Undefined if it was refused or another choice replaced it. */
  model(): Promise<QSF | undefined>;
  isOpen(llm: QSF): boolean;
  /** Runs `work`, which writes. `again` repeats it after a failure that may pass, which is shown at `place`. */
  write(place: Place, again: () => Promise<void>, work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): void;
}

/** Draws the engine's work while `write` runs, and after it. Returns its last statistics. */
export async function showingWork(llm: QSF, signal: AbortSignal, write: () => Promise<void>) {
  const before = await llm.stats();
  beginWork(before);
  const show = async () => {
    const stats = await llm.stats();
    drawFigures(stats);
    drawWork(stats, await llm.trace());
    return stats;
  };
  const refresh = setInterval(() => void show().catch(() => undefined), REFRESH);
  try {
    await write();
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(refresh);
  }
  const stats = await show();
  if (!signal.aborted) noteRun(before, stats);
  return stats;
}

/** Resolves as a promise does, unless the signal aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    promise.then(resolve, reject);
  });
}
