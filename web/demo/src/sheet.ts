// Dialogs over the page. They close by their button, by Escape and by a click outside.

import { hideNotice } from './notice.js';
import { nextTask } from './slices.js';

export function setUpSheet(sheet: HTMLDialogElement): void {
  sheet.querySelector('[data-close]')?.addEventListener('click', () => sheet.close());
  sheet.addEventListener('click', (event) => {
    if (event.target === sheet) sheet.close();
  });
  // A notice in the dialog is closed with it.
  sheet.addEventListener('close', () => {
    if (sheet.querySelector('.notice')) hideNotice();
  });
}

/** Opens a dialog, in a task after that of the click which asks for it. */
export function openSheet(sheet: HTMLDialogElement): void {
  void nextTask().then(() => {
    if (!sheet.open) sheet.showModal();
  });
}
