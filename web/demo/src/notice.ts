// The notice of a failure at the place that it concerns: a title in the page's own words, then the engine's sentence.
// It takes the focus, and returns it to the control of its place when it closes.

import { QSFError, hideSecrets } from 'qsf';
import { byId } from './dom.js';
import { titleOf } from './titles.js';

/** The places of a failure, and the control that belongs to each. */
const HOMES = {
  form: 'prompt',
  chat: 'message',
  budget: 'budget',
  file: 'model-button',
  pick: 'own-address',
  ask: 'question',
  library: 'add-files',
  models: 'choose-embedding',
} as const;
export type Place = keyof typeof HOMES;

/** A text of the page's own in place of an error. */
export interface Told {
  title: string;
  text: string;
}

const box = byId('notice', HTMLElement);
const title = byId('notice-title', HTMLElement);
const text = byId('notice-text', HTMLElement);
const button = byId('notice-action', HTMLButtonElement);
let place: Place = 'form';

/** Shows `error` at its place, with a button for an action if there is one. */
export function showNotice(at: Place, error: unknown, action?: string, act?: () => void): void {
  place = at;
  const told = isTold(error)
    ? error
    : { title: titleOf(error instanceof QSFError ? error.code : undefined), text: sentenceOf(error) };
  title.textContent = told.title;
  text.textContent = told.text;
  button.hidden = action === undefined;
  button.textContent = action ?? '';
  button.onclick = act ?? null;
  byId(`${at}-place`, HTMLElement).append(box);
  box.hidden = false;
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: 'nearest' });
}

export function hideNotice(): void {
  const held = box.contains(document.activeElement);
  box.hidden = true;
  if (held) document.getElementById(HOMES[place])?.focus({ preventScroll: true });
}

/** Shows `error`, with a button that tries again if the error may pass. */
export function showFailure(at: Place, error: unknown, again: () => void): void {
  if (error instanceof QSFError && error.mayPass) showNotice(at, error, 'Try again', again);
  else showNotice(at, error);
}

const isTold = (error: unknown): error is Told =>
  typeof error === 'object' && error !== null && !(error instanceof Error) && 'title' in error;

function sentenceOf(error: unknown): string {
  const sentence = hideSecrets(error instanceof Error ? error.message : String(error));
  const begin = /^https?:/.test(sentence) ? sentence.charAt(0) : sentence.charAt(0).toUpperCase();
  return begin + sentence.slice(1) + (/[.!?]$/.test(sentence) ? '' : '.');
}
