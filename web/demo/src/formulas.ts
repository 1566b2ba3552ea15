// Formulas in Markdown: \( … \), \[ … \], $$ … $$ and $ … $. A formula is shown as its text until KaTeX is there, and if it is
// none. Money is none: a $ … $ begins after a blank or a mark, ends before one, and has no blanks next to its dollars.

import type { MarkdownIt, StateBlock, StateInline, Token } from 'markdown-it';

/** Characters between the marks of a formula; more are text. */
const LONGEST = 4000;

type MathOf = (tex: string, display: boolean) => string | undefined;

let mathOf: MathOf | undefined;
let loading: Promise<void> | undefined;
/** MathML of the last formulas, because the end of a growing text is rendered with each frame. */
const known = new Map<string, string | undefined>();
const KNOWN = 300;

/** The state of a text while it is rendered. */
export interface Env {
  /** The text goes on, so that a formula at its end may have no closing mark yet. */
  grows?: boolean;
}

/** The marks that begin formulas, with those that end them. */
const CLOSES: Readonly<Record<string, string>> = { '\\(': '\\)', '\\[': '\\]', $$: '$$', $: '$' };

const isDisplay = (source: string) => source.startsWith('$$') || source.startsWith('\\[');

/** Returns the TeX between the marks. */
function texOf(source: string): string {
  const size = source.startsWith('$') && !source.startsWith('$$') ? 1 : 2;
  return source.slice(size, -size).trim();
}

/** Returns the formula of a text with its marks as HTML, or undefined. */
function mathOfSource(source: string): string | undefined {
  if (!mathOf) return undefined;
  if (known.has(source)) return known.get(source);
  const html = mathOf(texOf(source), isDisplay(source));
  if (known.size >= KNOWN) known.delete(known.keys().next().value!);
  known.set(source, html);
  return html;
}

/** Fetches KaTeX once, and shows the formulas of the page by it. Without it they stay texts. */
export const loadMath = (): Promise<void> => (loading ??= load().catch(() => undefined));

async function load(): Promise<void> {
  ({ mathOf } = await import('./math.js'));
  if (typeof document === 'undefined') return;
  for (const element of document.querySelectorAll('.formula:not(.is-set):not(.is-open)')) {
    const html = mathOfSource(element.textContent.trim());
    if (html === undefined) continue;
    element.innerHTML = html;
    element.classList.add('is-set');
  }
}

/** Adds formulas to a renderer of Markdown. */
export function addFormulas(markdown: MarkdownIt): void {
  const escaped = (text: string) => markdown.utils.escapeHtml(text);
  markdown.inline.ruler.before('escape', 'formula', inline);
  markdown.block.ruler.before('fence', 'formula', block, { alt: ['paragraph', 'reference', 'blockquote', 'list'] });
  markdown.renderer.rules['formula'] = (tokens, i) => {
    const { content, block: isBlock, info } = tokens[i]!;
    const isOpen = info === 'open';
    const math = isOpen ? undefined : mathOfSource(content);
    if (!isOpen) void loadMath();
    const display = isDisplay(content) ? ' display' : '';
    const state = math !== undefined ? ' is-set' : isOpen ? ' is-open' : '';
    const tag = isBlock ? 'div' : 'span';
    const focus = display === '' ? '' : ' tabindex="0"';
    return `<${tag} class="formula${display}${state}"${focus}>${math ?? escaped(content)}</${tag}>`;
  };
}

const isWord = (code: number) => /[\p{L}\p{N}]/u.test(String.fromCharCode(code));
const isBlank = (character: string | undefined) => character === undefined || /\s/.test(character);

/** Returns the mark at a place of a text, if it may begin a formula. */
function markAt(text: string, at: number): string | undefined {
  const two = text.slice(at, at + 2);
  if (CLOSES[two]) return two;
  if (two[0] !== '$' || isBlank(two[1])) return undefined;
  return at > 0 && isWord(text.charCodeAt(at - 1)) ? undefined : '$';
}

/** Returns the place of the closing mark before `last`, -1 if the text ends first, and undefined if this is no formula. */
function closeOf(text: string, from: number, last: number, open: string): number | undefined {
  const close = CLOSES[open]!;
  const end = Math.min(last, from + LONGEST);
  for (let i = from; i < end; i++) {
    if (text.startsWith(close, i)) return close === '$' && isMoney(text, from, i) ? undefined : i;
    if (text.startsWith(open, i) || (open.startsWith('$') && text[i] === '`')) return undefined;
    if (text[i] === '\\') i++;
  }
  return end === last ? -1 : undefined;
}

/** Whether a $ ends no formula: after a blank, before a word, or after a price with the words that follow it. */
function isMoney(text: string, from: number, at: number): boolean {
  const tex = text.slice(from, at);
  if (isBlank(tex.at(-1)) || (at + 1 < text.length && isWord(text.charCodeAt(at + 1)))) return true;
  if (!/^[\d.,]/.test(tex)) return false;
  const words = tex.replace(/\\text\s*\{[^}]*\}|\\[a-z]+/gi, '');
  return /,\s|[a-z]{3,}\s|\s[a-z]{2,}/i.test(words);
}

function fill(token: Token, content: string, isOpen: boolean): void {
  token.content = content;
  token.info = isOpen ? 'open' : '';
}

function inline(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  const open = markAt(src, pos);
  if (open === undefined) return false;
  const close = closeOf(src, pos + open.length, posMax, open);
  // A dollar alone waits for another one as text.
  const isOpen = close === -1 && open !== '$' && (state.env as Env).grows === true;
  if (close === undefined || (close === -1 && !isOpen)) return false;
  const end = isOpen ? posMax : close + CLOSES[open]!.length;
  if (!isOpen && src.slice(pos + open.length, close).trim() === '') return false;
  if (!silent) fill(state.push('formula', 'math', 0), src.slice(pos, end), isOpen);
  state.pos = end;
  return true;
}

/** A formula that has its lines for itself. In one, empty lines and lines like those of lists are of the formula. */
function block(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const begin = state.bMarks[first]! + state.tShift[first]!;
  if (state.sCount[first]! - state.blkIndent >= 4) return false;
  const open = state.src.slice(begin, begin + 2);
  if (open !== '$$' && open !== '\\[') return false;
  const close = closeOf(state.src, begin + 2, state.eMarks[last - 1]!, open);
  const isOpen = close === -1 && (state.env as Env).grows === true && last === state.lineMax && state.level === 0;
  if (close === undefined || (close === -1 && !isOpen)) return false;
  const end = isOpen ? state.eMarks[last - 1]! : close + 2;
  let line = first;
  while (line < last && state.eMarks[line]! < end) line++;
  // What follows the closing mark makes it a part of a paragraph; in a quotation or a list the lines have other beginnings.
  if (line === last || (line > first && (state.blkIndent > 0 || state.parentType === 'blockquote'))) return false;
  if (state.src.slice(end, state.eMarks[line]).trim() !== '' || state.src.slice(begin + 2, end - 2).trim() === '')
    return false;
  if (silent) return true;
  const token = state.push('formula', 'math', 0);
  token.block = true;
  token.map = [first, line + 1];
  fill(token, state.src.slice(begin, end), isOpen);
  state.line = line + 1;
  return true;
}
