// Markdown texts on the page: whole ones, in steps, and those that grow.

import { growingHtmlOf, htmlOf } from './markdown.js';
import { MOST, blocksOf, partsIn } from './parts.js';

/** The definition of a link, to which another block may refer. */
const REFERENCE = /^ {0,3}\[[^\]\n]{1,200}\]:/m;

/** Whether blocks of a text may need each other, so that it is rendered at once. A long text's references stay text. */
const isOne = (text: string): boolean => text.length <= MOST && REFERENCE.test(text);

/** Returns a part of a text as HTML. The browser lays out long ones only where they are seen. */
function partHtml(part: string): string {
  const html = htmlOf(part);
  return part.length < MOST / 4 ? html : `<div class="long">${html}</div>`;
}

/** Puts a text into an empty element, a block in each step. The last block is the first one, because readers begin there. */
export function* showFromEnd(element: HTMLElement, text: string): Generator<void> {
  const parts: string[] = [];
  if (isOne(text)) parts.push(text);
  else
    for (const part of partsIn(text)) {
      parts.push(part);
      yield; // the division of a long text has steps too
    }
  for (const part of parts.reverse()) {
    element.insertAdjacentHTML('afterbegin', partHtml(part));
    yield;
  }
}

/** A text that grows. Blocks before the last one are not rendered again. */
export class GrowingText {
  readonly element: HTMLElement;
  readonly #live = document.createElement('div');
  #text = '';
  /** The part of the text that the live element shows. */
  #tail = '';
  #isWaiting = false;
  /** The text of the code block at the end, if it is not complete. */
  #code: Text | undefined;

  constructor(element: HTMLElement) {
    this.element = element;
    element.append(this.#live);
  }

  get text(): string {
    return this.#text;
  }

  /** Adds a piece, which is shown with the next frame. `shown` is called after that. */
  add(piece: string, shown: () => void): void {
    this.#text += piece;
    this.#tail += piece;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      if (!this.#isWaiting) return;
      this.#isWaiting = false;
      this.#render();
      shown();
    });
  }

  /** Shows the whole text, with references that were defined after their use. */
  end(): void {
    this.#isWaiting = false;
    if (isOne(this.#text)) {
      this.element.innerHTML = htmlOf(this.#text);
      return;
    }
    this.#render(htmlOf);
    this.#live.replaceWith(...this.#live.childNodes);
  }

  #render(lastHtml: (text: string) => string = growingHtmlOf): void {
    const grows = lastHtml !== htmlOf;
    const parts = [...partsIn(this.#tail, grows)];
    if (parts.length > 1) {
      this.#tail = parts.pop()!;
      this.#live.insertAdjacentHTML('beforebegin', parts.map(partHtml).join(''));
      this.#code = undefined;
    }
    const [last] = blocksOf(this.#tail, grows);
    const content = last?.type === 'fence' ? last.content : '';
    if (this.#code && content.startsWith(this.#code.data)) {
      this.#code.appendData(content.slice(this.#code.data.length));
    } else {
      this.#live.innerHTML = lastHtml(this.#tail);
      const code = content === '' ? undefined : this.#live.querySelector('code')?.firstChild;
      this.#code = code instanceof Text ? code : undefined;
    }
  }
}
