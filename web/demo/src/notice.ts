// What the page says when something does not work: a title in its own words, then the engine's sentence.

import { QSFError } from 'qsf';
import type { ErrorName } from 'qsf';
import { byId } from './dom.js';

/** Titles by error code; others get the last. */
const TITLES: Partial<Record<ErrorName, string>> = {
  budget_too_small: 'This budget is too small for the model',
  context_full: 'The story no longer fits into the context',
  network_error: 'The model could not be fetched',
  http_status: 'The model could not be fetched',
  no_ranges: 'The server does not send parts of files',
  file_changed: 'The model changed on the server',
  bad_checksum: 'The model file is damaged',
  out_of_memory: 'The browser refused the memory',
  unsupported_host: 'This browser lacks something that is needed',
};
const OTHERWISE = 'That did not work';

const box = byId('notice', HTMLElement);
const title = byId('notice-title', HTMLElement);
const text = byId('notice-text', HTMLElement);
const button = byId('notice-action', HTMLButtonElement);

/** Shows `error` with a button that does something about it. */
export function showNotice(error: unknown, action: string, act: () => void): void {
  title.textContent = (error instanceof QSFError && TITLES[error.code]) || OTHERWISE;
  const sentence = error instanceof Error ? error.message : String(error);
  text.textContent = sentence.charAt(0).toUpperCase() + sentence.slice(1) + (/[.!?]$/.test(sentence) ? '' : '.');
  button.textContent = action;
  button.onclick = act;
  box.hidden = false;
}

export function hideNotice(): void {
  box.hidden = true;
}
