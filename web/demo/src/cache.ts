// The meter of the model file's bytes in this browser's cache, during a download and after it.

import { QSF } from 'qsf';
import type { Progress } from 'qsf';
import { byId, isOff, setOff } from './dom.js';
import * as format from './format.js';
import { CACHE_LIMIT } from './kept.js';

const meter = byId('cache-meter', HTMLElement);
const fill = meter.firstElementChild as HTMLElement;
const text = byId('cache-text', HTMLElement);
const button = byId('cache-remove', HTMLButtonElement);

/** Shows the cached part of the model of `size` bytes at an address. A file is never cached. */
export async function showCache(source: string | File, size = 0): Promise<void> {
  if (typeof source !== 'string') {
    setOff(button, true);
    show(source.size, source.size, `Read from your file, ${format.bytes(source.size)}.`);
    return;
  }
  const { bytes, total } = await QSF.cache.state(source);
  setOff(button, bytes === 0);
  show(
    bytes,
    total,
    bytes === 0
      ? `Not kept in this browser${size > CACHE_LIMIT ? `: it is larger than ${format.fileSize(CACHE_LIMIT)}` : ''}.`
      : bytes < total
        ? `Partly kept in this browser: ${format.bytes(bytes)} of ${format.bytes(total)}.`
        : `Kept in this browser: ${format.bytes(total)}, checked.`,
  );
}

/** Shows the progress of a download. */
export function showDownload({ loaded, total }: Progress): void {
  show(loaded, total, `Fetching ${format.bytes(loaded)} of ${format.bytes(total)}`);
}

/** Calls `remove` when the button is pressed. */
export function onRemove(remove: () => Promise<void>): void {
  button.addEventListener('click', () => {
    if (!isOff(button)) void remove();
  });
}

function show(bytes: number, total: number, words: string): void {
  const percent = total > 0 ? Math.floor((100 * bytes) / total) : 0;
  meter.setAttribute('aria-valuenow', String(percent));
  fill.style.width = `${percent}%`;
  text.textContent = words;
}
