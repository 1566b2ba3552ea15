// Markdown of answers as elements. HTML in a text is shown as text, images are not loaded, and links open other tabs.

import MarkdownIt from 'markdown-it';
import type { Token } from 'markdown-it';

const markdown = new MarkdownIt({ html: false, breaks: true }).disable('image');
const { rules } = markdown.renderer;
const escaped = (text: string) => markdown.utils.escapeHtml(text);

const code = (text: string, language: string) =>
  `<div class="code"><div class="code-head"><span>${escaped(language)}</span>` +
  '<button class="quiet copy" type="button">Copy</button></div>' +
  `<pre tabindex="0"><code>${escaped(text)}</code></pre></div>`;

rules['fence'] = (tokens, i) => code(tokens[i]!.content, tokens[i]!.info.trim().split(/\s+/)[0] ?? '');
rules['code_block'] = (tokens, i) => code(tokens[i]!.content, '');
// One level of headings: an answer is a part of a page that has its own.
rules['heading_open'] = (tokens, i) => `<h3 class="level-${tokens[i]!.tag.slice(1)}">`;
rules['heading_close'] = () => '</h3>';
rules['table_open'] = () => '<div class="table" tabindex="0"><table>';
rules['table_close'] = () => '</table></div>';
rules['link_open'] = (tokens, i, options, _, self) => {
  tokens[i]!.attrSet('target', '_blank');
  tokens[i]!.attrSet('rel', 'noopener noreferrer');
  return self.renderToken(tokens, i, options);
};
// The page's policy forbids styles in attributes.
for (const cell of ['th', 'td']) {
  rules[`${cell}_open`] = (tokens, i) => {
    const align = /text-align:(\w+)/.exec(String(tokens[i]!.attrGet('style') ?? ''))?.[1];
    return align === undefined ? `<${cell}>` : `<${cell} class="${align}">`;
  };
}

/** Returns a text as HTML, which has no element or attribute of the text's own. */
export const htmlOf = (text: string): string => markdown.render(text);

/** The definition of a link, to which another block may refer. */
const REFERENCE = /^ {0,3}\[[^\]]+\]:/m;

/** Returns the tokens that begin the blocks of a text. */
function blocksOf(text: string): Token[] {
  const tokens: Token[] = [];
  markdown.block.parse(text, markdown, {}, tokens);
  return tokens.filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map);
}

const unified = (text: string): string => text.replace(/\r\n?/g, '\n');

/** Returns the parts of a text that are blocks of Markdown. Together they are the text. */
export function partsOf(text: string): string[] {
  const lines = unified(text).split('\n');
  const begins = blocksOf(lines.join('\n')).map(({ map }) => map![0]);
  if (begins.length === 0) return [lines.join('\n')];
  begins[0] = 0;
  return begins.map((begin, i) => lines.slice(begin, begins[i + 1]).join('\n'));
}

/** Puts a text into an empty element, a block in each step. The last block is the first one, because readers begin there. */
export function* showFromEnd(element: HTMLElement, text: string): Generator<void> {
  const parts = REFERENCE.test(text) ? [text] : partsOf(text);
  for (const part of parts.reverse()) {
    element.insertAdjacentHTML('afterbegin', htmlOf(part));
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
    if (REFERENCE.test(this.#text)) {
      this.element.innerHTML = htmlOf(this.#text);
    } else {
      this.#render();
      this.#live.replaceWith(...this.#live.childNodes);
    }
  }

  #render(): void {
    const parts = partsOf(this.#tail);
    if (parts.length > 1) {
      this.#tail = parts.pop()!;
      this.#live.insertAdjacentHTML('beforebegin', parts.map(htmlOf).join(''));
      this.#code = undefined;
    }
    const [last] = blocksOf(unified(this.#tail));
    const content = last?.type === 'fence' ? last.content : '';
    if (this.#code && content.startsWith(this.#code.data)) {
      this.#code.appendData(content.slice(this.#code.data.length));
    } else {
      this.#live.innerHTML = htmlOf(this.#tail);
      const code = content === '' ? undefined : this.#live.querySelector('code')?.firstChild;
      this.#code = code instanceof Text ? code : undefined;
    }
  }
}
