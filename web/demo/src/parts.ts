// The division of a Markdown text into parts that are rendered one by one. However long a text is, so is no part, except code.

import type { Token } from 'markdown-it';
import { markdown } from './markdown.js';

/** Characters of a part. A longer paragraph, list or table is cut, because its rendering would hold up the page. */
export const MOST = 8192;

/** Characters that are divided at once. */
const WINDOW = 2 * MOST;

const unified = (text: string): string => text.replace(/\r\n?/g, '\n');

/** Returns the tokens that begin the blocks of a text. */
export function blocksOf(text: string, grows: boolean): Token[] {
  const tokens: Token[] = [];
  markdown.block.parse(text, markdown, { grows }, tokens);
  return tokens.filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map);
}

/** Returns the place at which a text is cut: after a line or a word, if one ends in the second half of `most` characters. */
function cutOf(text: string, most: number): number {
  for (const end of ['\n', ' ']) {
    const at = text.lastIndexOf(end, most - 1) + 1;
    if (at > most / 2) return at;
  }
  const code = text.charCodeAt(most);
  return code >= 0xdc00 && code < 0xe000 ? most - 1 : most;
}

/** Gives the parts of a text. Together they are the text, with line ends of one kind. */
export function* partsIn(text: string, grows = false): Generator<string> {
  let rest = unified(text);
  for (let size = WINDOW; ;) {
    const window = rest.length > size ? rest.slice(0, cutOf(rest, size)) : rest;
    const isLast = window.length === rest.length;
    const blocks = blocksOf(window, grows && isLast);
    const lines = window.split('\n');
    const begins = blocks.map(({ map }) => map![0]);
    begins[0] = 0;
    const parts = begins.map((begin, i) => lines.slice(begin, begins[i + 1]).join('\n'));
    // The last block may go on after the window.
    const whole = isLast ? parts.length : parts.length - 1;
    if (whole === 0 && isCode(blocks[0])) {
      size *= 2;
      continue;
    }
    let taken = 0;
    for (const [i, block] of parts.entries()) {
      let part = block;
      const isShort = part.length <= MOST || isCode(blocks[i]);
      if (isShort && i === whole) break; // in the next window
      if (isShort) {
        yield part;
        taken += part.length + 1;
        continue;
      }
      while (part.length > MOST) {
        const cut = cutOf(part, MOST);
        yield part.slice(0, cut).replace(/\n$/, '');
        part = part.slice(cut);
        taken += cut;
      }
      break; // the rest begins anew
    }
    if (taken >= rest.length) return;
    rest = rest.slice(taken);
    size = WINDOW;
  }
}

const isCode = (block: Token | undefined) => block?.type === 'fence' || block?.type === 'code_block';

/** Returns the parts of a text. */
export const partsOf = (text: string): string[] => [...partsIn(text)];
