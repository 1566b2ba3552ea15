// Dialogs over the page. They close by their button, by Escape and by a click outside.

import { hideNotice } from './notice.js';

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

export function openSheet(sheet: HTMLDialogElement): void {
  if (!sheet.open) sheet.showModal();
}
