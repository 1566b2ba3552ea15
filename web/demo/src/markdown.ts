// Markdown of answers as elements. HTML in a text is shown as text, images are not loaded, and links open other tabs.

import MarkdownIt from 'markdown-it';

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

/** Returns the line on which the last block of a text begins; 0 if it has one block. */
export function lastBlock(text: string): number {
  const blocks = markdown.parse(text, {}).filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map);
  return blocks.at(-1)?.map?.[0] ?? 0;
}

/** A text that grows. Blocks before the last one are not rendered again. */
export class GrowingText {
  readonly element: HTMLElement;
  readonly #live = document.createElement('div');
  #text = '';
  /** The part of the text that the live element shows. */
  #tail = '';
  #isWaiting = false;

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
    this.element.innerHTML = htmlOf(this.#text);
  }

  #render(): void {
    const line = lastBlock(this.#tail);
    if (line > 0) {
      const lines = this.#tail.split('\n');
      this.#live.insertAdjacentHTML('beforebegin', htmlOf(lines.slice(0, line).join('\n')));
      this.#tail = lines.slice(line).join('\n');
    }
    this.#live.innerHTML = htmlOf(this.#tail);
  }
}
