// The model of the last conversation, with which a visitor who comes back can go on. Nothing is fetched for it.

import { QSF, hideSecrets } from 'qsf';
import { modelAddress } from './address.js';
import { byId } from './dom.js';
import { titleOf } from './picker.js';

const KEY = 'qsf.last';

const box = byId('last', HTMLElement);
const text = byId('last-text', HTMLElement);

export interface Last {
  source: string;
  /** Its budget in bytes. */
  memory: number;
}

/** Notes a model whose address has no secrets. A file of the visitor cannot be opened again. */
export function noteLast(source: string | File, memory: number): void {
  try {
    if (typeof source !== 'string' || hideSecrets(source) !== source) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify({ source, memory }));
  } catch {
    // Without storage nothing is offered.
  }
}

/** Offers to go on with the last conversation, if the browser keeps its model whole. */
export async function offerLast(): Promise<void> {
  const last = noted();
  if (last === undefined || !(await QSF.cache.state(last.source)).complete) return;
  text.textContent = `Your last conversation was with ${titleOf(last.source, undefined)}, which this browser keeps.`;
  box.hidden = false;
}

/** Calls `goOn` with the model of the last conversation when the visitor asks for it. */
export function onLast(goOn: (last: Last) => void): void {
  byId('last-open', HTMLButtonElement).addEventListener('click', () => {
    const last = noted();
    if (last) goOn(last);
  });
}

export function hideLast(): void {
  box.hidden = true;
}

function noted(): Last | undefined {
  try {
    const { source, memory } = JSON.parse(localStorage.getItem(KEY) ?? '') as Partial<Last>;
    const isValid = typeof source === 'string' && modelAddress(source) === source && typeof memory === 'number';
    return isValid ? { source, memory } : undefined;
  } catch {
    return undefined;
  }
}
