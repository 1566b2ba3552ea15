// The model of the last conversation, with which a visitor who comes back can go on. Nothing is fetched for the offer, which
// early.ts has shown already.

import { QSF, hideSecrets } from 'qsf';
import { modelAddress } from './address.js';
import { byId } from './dom.js';
import { note, noted, showOffer } from './noted.js';
import type { Last } from './noted.js';
import { titleOf } from './picker.js';

const box = byId('last', HTMLElement);

/** Notes a model whose address has no secrets. A file of the visitor cannot be opened again. */
export function noteLast(source: string | File, memory: number): void {
  const isPublic = typeof source === 'string' && hideSecrets(source) === source;
  note(isPublic ? { source, memory, title: titleOf(source, undefined) } : undefined);
}

/**
 * Corrects the offer if the browser does not keep the model whole, and makes it the last one. Its room stays, so that
 * nothing moves.
 */
export async function checkLast(): Promise<void> {
  const last = noted();
  if (box.hidden || last === undefined || (await QSF.cache.state(last.source)).complete || box.hidden) return;
  box.style.minHeight = `${String(box.offsetHeight)}px`;
  showOffer(last, 'which is fetched again');
  note(undefined);
}

/** Calls `goOn` with the model of the last conversation when the visitor asks for it. */
export function onLast(goOn: (last: Last) => void): void {
  const last = noted();
  byId('last-open', HTMLButtonElement).addEventListener('click', () => {
    if (last && modelAddress(last.source) === last.source) goOn(last);
  });
}

export function hideLast(): void {
  box.hidden = true;
}
