// The note of the last conversation's model, which is read before the rest of the page is there. It imports nothing large.

import { byId } from './dom.js';

const KEY = 'qsf.last';

export interface Last {
  source: string;
  /** Its budget in bytes. */
  memory: number;
  /** Its name for the visitor. */
  title: string;
}

/** Notes a model, or with undefined that there is none to go on with. Without storage nothing is offered. */
export function note(last: Last | undefined): void {
  try {
    if (last) localStorage.setItem(KEY, JSON.stringify(last));
    else localStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

export function noted(): Last | undefined {
  try {
    const { source, memory, title } = JSON.parse(localStorage.getItem(KEY) ?? '') as Partial<Last>;
    const isValid = typeof source === 'string' && typeof memory === 'number' && typeof title === 'string';
    return isValid ? { source, memory, title } : undefined;
  } catch {
    return undefined;
  }
}

/** Shows the offer to go on with a model, of which the end of the sentence says whether the browser keeps it. */
export function showOffer({ title }: Last, end: string): void {
  byId('last-text', HTMLElement).textContent = `Your last conversation was with ${title}, ${end}.`;
  byId('last', HTMLElement).hidden = false;
}

/** The end of the sentence until the browser has been asked. */
export const KEPT = 'which this browser keeps';
