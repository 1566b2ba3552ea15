// The question before a model that a link names is opened. Nothing of the model is requested before the visitor agrees.

import { hostOf, shownAddress, suggestedSource } from './address.js';
import { byId } from './dom.js';
import * as format from './format.js';
import { setUpSheet } from './sheet.js';

const sheet = byId('linked', HTMLDialogElement);
const text = byId('linked-text', HTMLElement);
const address = byId('linked-address', HTMLElement);
const facts = byId('linked-facts', HTMLElement);

let answer: ((agreed: boolean | undefined) => void) | undefined;

/** Sets up the dialog. */
export function setUpLinked(): void {
  setUpSheet(sheet);
  byId('linked-open', HTMLButtonElement).addEventListener('click', () => settle(true));
  // The event comes late: a newer question may be on the page by then.
  sheet.addEventListener('close', () => {
    if (!sheet.open) settle(false);
  });
}

/**
 * Asks whether the model at an address may be fetched and opened with `memory` bytes. Resolves with undefined if
 * dropQuestion() or a newer question ends the question.
 */
export function asks(model: string, memory: number): Promise<boolean | undefined> {
  answer?.(undefined);
  const known = suggestedSource(model);
  text.textContent = `This model is fetched from ${hostOf(model)}, and kept if this browser has room:`;
  address.textContent = shownAddress(model);
  facts.textContent =
    (known
      ? `${known.title} has ${format.fileSize(known.bytes)}. `
      : 'Its size is unknown until its server is asked. Then the page shows it, and Cancel ends the download. ') +
    `The link’s memory budget is ${format.budget(memory)}. Nothing has been requested yet.`;
  if (!sheet.open) sheet.showModal();
  return new Promise((resolve) => (answer = resolve));
}

/** Ends the question without an answer. */
export const dropQuestion = (): void => settle(undefined);

/** Whether a page of another origin shows this page in a frame. It could lead a visitor to agree unknowingly. */
export function isFramedElsewhere(): boolean {
  for (let page: Window = window; page !== page.parent; page = page.parent) {
    try {
      if (page.parent.location.origin !== location.origin) return true;
    } catch {
      return true;
    }
  }
  return false;
}

function settle(agreed: boolean | undefined): void {
  const tell = answer;
  answer = undefined;
  if (sheet.open) sheet.close();
  tell?.(agreed);
}
