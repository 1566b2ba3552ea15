// Small buttons, and the copying of a text.

import { make } from './dom.js';

/** Returns a small button. */
export function smallButton(label: string, click: () => void): HTMLButtonElement {
  const button = make('button', { type: 'button', class: 'quiet' }, label);
  button.addEventListener('click', click);
  return button;
}

/** Copies a text. Resolves with false if the browser does not allow it; pages over http have no clipboard. */
export async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Copies a text, and says so on the button for a moment. */
export async function copy(text: string, button: HTMLElement): Promise<void> {
  const words = button.textContent;
  button.textContent = (await isCopied(text)) ? 'Copied' : 'Not allowed';
  setTimeout(() => (button.textContent = words), 1500);
}
