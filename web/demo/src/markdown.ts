// Markdown of answers as elements. HTML in a text is shown as text, images are not loaded, and links open other tabs.

import MarkdownIt from 'markdown-it';
import type { Token } from 'markdown-it';
import { addFormulas } from './formulas.js';

export const markdown = new MarkdownIt({ html: false, breaks: true }).disable('image');
addFormulas(markdown);
const { rules } = markdown.renderer;
const escaped = (text: string) => markdown.utils.escapeHtml(text);

const code = (text: string, language: string) =>
  `<div class="code"><div class="code-head"><span>${escaped(language)}</span>` +
  '<button class="quiet copy" type="button">Copy</button></div>' +
  `<pre tabindex="0"><code>${escaped(text)}</code></pre></div>`;

rules['fence'] = (tokens, i) => code(tokens[i]!.content, tokens[i]!.info.trim().split(/\s+/)[0] ?? '');
rules['code_block'] = (tokens, i) => code(tokens[i]!.content, '');
// One level of headings: an answer is a part of a page that has its own.
rules['heading_open'] = (tokens, i) => `<h3 class="level-${tokens[i]!.tag.slice(1)}"${directionOf(tokens[i]!)}>`;
rules['heading_close'] = () => '</h3>';
rules['table_open'] = (tokens, i) => `<div class="table" tabindex="0"${directionOf(tokens[i]!)}><table>`;
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

/** Letters of scripts that are written from right to left. */
const FROM_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

// A block begins on the side of its first letter, and so do its lists and tables.
markdown.core.ruler.push('direction', ({ src, tokens }) => {
  if (!FROM_RIGHT.test(src)) return;
  for (const token of tokens) if (token.level === 0 && token.nesting === 1) token.attrSet('dir', 'auto');
});

const directionOf = (token: Token) => (token.attrGet('dir') === null ? '' : ' dir="auto"');

/** Returns a text as HTML, which has no element or attribute of the text's own. */
export const htmlOf = (text: string): string => markdown.render(text, {});

/** The same of a text that goes on. */
export const growingHtmlOf = (text: string): string => markdown.render(text, { grows: true });
