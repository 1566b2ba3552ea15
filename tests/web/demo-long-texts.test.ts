// Long and hostile texts in the demo's answers: no part that is rendered at once is long, and a growing text is rendered by its
// end only.
import MarkdownIt from 'markdown-it';
import type { MarkdownIt as Renderer } from 'markdown-it';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { htmlOf } from '../../web/demo/src/markdown.js';
import { MOST, partsIn, partsOf } from '../../web/demo/src/parts.js';
import { GrowingText, showFromEnd } from '../../web/demo/src/shown-text.js';

const MiB = 1 << 20;
const lines = (count: number, mark = '') => Array.from({ length: count }, (_, i) => `${mark}line ${i}`).join('\n');

const TEXTS: Record<string, string> = {
  '200,000 lines in one paragraph': lines(200_000),
  'a megabyte in one word': 'x'.repeat(MiB),
  'a megabyte in one line': 'word '.repeat(MiB / 5),
  'a megabyte of half characters': '\u{1f98a}'.repeat(MiB / 4),
  'list items': lines(20_000, '- '),
  rows: `|a|\n|-|\n${lines(20_000, '|')}`,
  'quoted lines': lines(20_000, '> '),
  'beginnings of references': '[a\n'.repeat(20_000),
  'empty lines': '\n'.repeat(MiB / 8),
  'beginnings of formulas': '\\[\n'.repeat(20_000),
};

/** Sizes of the texts that were rendered. */
let rendered: number[] = [];

beforeEach(() => {
  rendered = [];
  const { render } = MarkdownIt.prototype as Renderer;
  vi.spyOn(MarkdownIt.prototype as Renderer, 'render').mockImplementation(function (this: Renderer, text, env) {
    rendered.push(text.length);
    return render.call(this, text, env);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
const words = (text: string) => text.replace(/\s+/g, '');

describe.each(Object.entries(TEXTS))('%s', (_, text) => {
  it('are in short parts, which together are the text', () => {
    const parts = partsOf(text);
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(MOST);
    expect(words(parts.join('\n'))).toBe(words(text));
  });

  it('are shown in steps that render no more than a part', () => {
    const shown: string[] = [];
    const element = { insertAdjacentHTML: (_: string, html: string) => shown.unshift(html) };
    const steps = showFromEnd(element as unknown as HTMLElement, text);
    while (!steps.next().done) {
      expect(sum(rendered.splice(0))).toBeLessThanOrEqual(MOST);
    }
    expect(shown.length).toBeGreaterThan(1);
  });

  it('grow by their end', () => {
    const frames: (() => void)[] = [];
    const element = () => ({ innerHTML: '', append() {}, insertAdjacentHTML() {}, replaceWith() {}, childNodes: [] });
    vi.stubGlobal('document', { createElement: element });
    vi.stubGlobal('Text', Map); // no element here is one
    vi.stubGlobal('requestAnimationFrame', (frame: () => void) => frames.push(frame));
    const view = new GrowingText(element() as unknown as HTMLElement);
    const piece = MOST;
    for (let at = 0; at < text.length; at += piece) {
      view.add(text.slice(at, at + piece), () => {});
      frames.pop()?.();
      expect(sum(rendered.splice(0))).toBeLessThanOrEqual(2 * (MOST + piece));
    }
    view.end();
    expect(sum(rendered)).toBeLessThanOrEqual(MOST + piece);
    expect(view.text).toBe(text);
  });
});

it('code is one part, however long', () => {
  const code = `a\n\n\`\`\`js\n${lines(20_000)}\n\`\`\`\n\nb`;
  expect(partsOf(code).map((part) => part.length)).toEqual([2, code.length - 5, 1]);
  expect(partsOf(`\`\`\`\n${lines(20_000)}`)).toHaveLength(1);
});

it('parts of usual texts are their blocks, in each window of a long one', () => {
  const block = '# Title\n\nA paragraph\nof lines.\n\n- one\n- two\n\n```\n\ncode\n\n```\n\n';
  const text = `${block.repeat(300)}End`;
  expect(partsOf(text)).toEqual([
    ...Array.from({ length: 300 }, () => partsOf(`${block}End`).slice(0, 4)).flat(),
    'End',
  ]);
  expect([...partsIn(text)].map(htmlOf).join('')).toBe(htmlOf(text));
});
