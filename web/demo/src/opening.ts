// The line about a model that is being opened: its phase, bytes, rate, time left and retries.

import type { Progress } from 'qsf';
import { byId } from './dom.js';
import * as format from './format.js';

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

/** Returns the progress as a line of text. */
export function inWords(title: string, progress?: Progress): string {
  if (progress === undefined || progress.total === 0) return `Asking for ${title} …`;
  const { phase, loaded, total, rate, secondsLeft, retry } = progress;
  if (retry) {
    const seconds = Math.ceil(retry.seconds);
    return `${title}: the server does not answer. Try ${retry.attempt} of ${retry.tries} in ${seconds} s.`;
  }
  if (phase !== 'download') return `Opening ${title} …`;
  return [
    `${title}: ${format.bytes(loaded)} of ${format.bytes(total)}`,
    ...(rate === undefined ? [] : [`${format.bytes(rate)}/s`]),
    ...(secondsLeft === undefined ? [] : [`${format.duration(secondsLeft)} left`]),
  ].join(' · ');
}
