// The line about a model that is being opened: its phase, bytes, rate, time left and retries.

import type { Progress } from 'qsf';
import { byId } from './dom.js';
import { inWords } from './progress.js';

const box = byId('opening', HTMLElement);
const text = byId('opening-text', HTMLElement);
const meter = byId('opening-meter', HTMLElement);
const fill = meter.firstElementChild as HTMLElement;

/** Shows the progress of an opening. Without a progress, it has just begun. */
export function showOpening(title: string, progress?: Progress): void {
  box.hidden = false;
  const percent = progress && progress.total > 0 ? Math.floor((100 * progress.loaded) / progress.total) : 0;
  meter.hidden = percent === 0;
  meter.setAttribute('aria-valuenow', String(percent));
  fill.style.width = `${percent}%`;
  text.textContent = inWords(title, progress);
}

export function hideOpening(): void {
  box.hidden = true;
}
