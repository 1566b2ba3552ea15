// The messages of a conversation on the page.

import { smallButton } from './buttons.js';
import { make } from './dom.js';
import { GrowingText, showFromEnd } from './shown-text.js';

const speaker = (name: string) => make('span', { class: 'visually-hidden' }, `${name}:`);

/** Returns a message of the user. `edit`, if it is there, gets the new text. */
export function userMessage(text: string, edit: ((text: string) => void) | undefined): HTMLElement {
  const words = make('p', { class: 'bubble', dir: 'auto' }, text);
  const box = make('article', { class: 'message user' }, speaker('You'), words);
  if (edit === undefined) return box;
  const actions = make('div', { class: 'message-actions' });
  const back = () => {
    box.classList.remove('is-edited');
    box.replaceChildren(speaker('You'), words, actions);
    button.focus();
  };
  const begin = () => {
    const field = make('textarea', { 'aria-label': 'Your message', rows: '3', dir: 'auto' });
    field.value = text;
    const send = () => {
      const now = field.value.trim();
      if (now !== '') edit(now);
    };
    const buttons = make(
      'div',
      { class: 'message-actions' },
      smallButton('Cancel', back),
      smallButton('Send again', send),
    );
    field.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') back();
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
      if (event.key === 'Escape' || event.key === 'Enter') event.stopPropagation();
    });
    box.classList.add('is-edited');
    box.replaceChildren(field, buttons);
    field.focus();
  };
  const button = smallButton('Edit', begin);
  actions.append(button);
  box.append(actions);
  return box;
}

/** An answer on the page: its thoughts, calls and texts in their order. */
export class AnswerView {
  readonly element: HTMLElement;
  readonly #parts = make('div', { class: 'parts' });
  readonly #foot = make('div', { class: 'message-actions' });
  readonly #shown: () => void;
  readonly #results = new Map<string, HTMLElement>();
  readonly #texts: string[] = [];
  readonly #hidden: Generator<void>[] = [];
  #open: { kind: 'text' | 'thought'; view: GrowingText; end: () => void } | undefined;

  /** `shown` is called after each change of the page. */
  constructor(model: string, shown: () => void) {
    this.#shown = shown;
    this.element = make('article', { class: 'message answer' }, speaker(model), this.#parts, this.#foot);
  }

  /** The text for the user. */
  get text(): string {
    const last = this.#open?.kind === 'text' ? [this.#open.view.text] : [];
    return [...this.#texts, ...last].join('\n\n').trim();
  }

  add(kind: 'text' | 'thought', piece: string): void {
    if (this.#open?.kind !== kind) {
      // Models write empty lines around thoughts.
      if (piece.trim() === '') return;
      this.#endOpen();
      this.#open = kind === 'text' ? this.#growingText() : this.#growingThought();
    }
    this.#open.view.add(piece, this.#shown);
  }

  /** Adds a whole text, which showTexts() shows. */
  addWhole(kind: 'text' | 'thought', text: string): void {
    if (text.trim() === '') return;
    const { element } = kind === 'text' ? this.#textBlock() : this.#thoughtBlock();
    this.#hidden.unshift(showFromEnd(element, text));
    if (kind === 'text') this.#texts.push(text);
  }

  /** Shows the whole texts that were added, a block in each step. */
  *showTexts(): Generator<void> {
    for (const text of this.#hidden) yield* text;
  }

  addCall(id: string, name: string, given: unknown): void {
    this.#endOpen();
    const result = make('output', {}, '…');
    this.#results.set(id, result);
    const shown =
      given !== null && typeof given === 'object' && Object.keys(given).length > 0 ? JSON.stringify(given) : '';
    this.#parts.append(
      make(
        'p',
        { class: 'call' },
        make('code', {}, `${name}(${shown})`),
        make('span', { 'aria-hidden': 'true' }, '→'),
        result,
      ),
    );
    this.#shown();
  }

  setResult(id: string, result: string): void {
    const place = this.#results.get(id);
    if (place) place.textContent = result;
    this.#shown();
  }

  /** Ends the answer, with a line about it and its buttons. */
  end(words: string, ...buttons: HTMLElement[]): void {
    this.#endOpen();
    for (const result of this.#results.values()) if (result.textContent === '…') result.textContent = 'not run';
    this.#foot.replaceChildren(...buttons, ...(words === '' ? [] : [make('span', { class: 'small' }, words)]));
    this.#shown();
  }

  /** Takes the buttons from the answer that are for the last one only. */
  endLast(): void {
    for (const button of this.#foot.querySelectorAll('.last-only')) button.remove();
  }

  #textBlock() {
    const element = make('div', { class: 'prose' });
    this.#parts.append(element);
    return { element };
  }

  #thoughtBlock() {
    const element = make('div', { class: 'prose' });
    const summary = make('summary', {}, 'Thoughts');
    this.#parts.append(make('details', { class: 'thoughts' }, summary, element));
    return { element, summary };
  }

  #growingText() {
    const view = new GrowingText(this.#textBlock().element);
    const end = () => {
      view.end();
      this.#texts.push(view.text);
    };
    return { kind: 'text' as const, view, end };
  }

  #growingThought() {
    const { element, summary } = this.#thoughtBlock();
    const view = new GrowingText(element);
    summary.textContent = 'Thinking …';
    const end = () => {
      view.end();
      summary.textContent = 'Thoughts';
    };
    return { kind: 'thought' as const, view, end };
  }

  #endOpen(): void {
    this.#open?.end();
    this.#open = undefined;
  }
}
