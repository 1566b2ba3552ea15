// Formulas in the demo's Markdown: which texts are formulas, how they grow, and what hostile ones cost.
import { beforeAll, describe, expect, it } from 'vitest';

import { loadMath } from '../../web/demo/src/formulas.js';
import { growingHtmlOf, htmlOf } from '../../web/demo/src/markdown.js';
import { mathOf } from '../../web/demo/src/math.js';
import { partsOf } from '../../web/demo/src/parts.js';

/** The formulas of a text as they are written. */
const formulas = (html: string) =>
  [...html.matchAll(/<annotation encoding="application\/x-tex">([^<]*)</g)].map(([, tex]) => tex);
const displays = (html: string) => html.split('display="block"').length - 1;

describe('before KaTeX is there', () => {
  it('a formula is its own text, in which nothing is Markdown', () => {
    expect(htmlOf('So \\(a_1 * b_1 * <b>\\).')).toBe(
      '<p>So <span class="formula">\\(a_1 * b_1 * &lt;b&gt;\\)</span>.</p>\n',
    );
    expect(htmlOf('$$\nx\n$$')).toBe('<div class="formula display" tabindex="0">$$\nx\n$$</div>');
  });
});

describe('formulas', () => {
  beforeAll(loadMath);

  it.each([
    ['\\(x^2\\)', ['x^2'], 0],
    ['$x^2$ and $y$, ($z$)', ['x^2', 'y', 'z'], 0],
    ['\\[x^2\\]', ['x^2'], 1],
    ['$$x^2$$', ['x^2'], 1],
    ['Thus $$x^2$$ holds, and \\[y\\] too', ['x^2', 'y'], 2],
    ['$$\na\n\n- b\n= c\n$$\nNext', ['a\n\n- b\n= c'], 1],
    ['Text\n\\[\na\n\\]\nText', ['a'], 1],
    ['- one:\n  \\[\n  a\n  \\]\n- $b$', ['a', 'b'], 1],
    ['> \\[ a \\]', ['a'], 1],
    ['**$a$** and *\\(b\\)*', ['a', 'b'], 0],
    ['# $a_1$ of $b_1$', ['a_1', 'b_1'], 0],
    ['|a|\n|-|\n|$x$|', ['x'], 0],
    ['$5$ apples, $3 \\times 4 = 12$, $2x + 1$, $1/2$', ['5', '3 \\times 4 = 12', '2x + 1', '1/2'], 0],
    ['$a\\$b$', ['a\\$b'], 0],
  ])('of %j are %j', (text, wanted, blocks) => {
    const html = htmlOf(text);
    expect(formulas(html)).toEqual(wanted);
    expect(displays(html)).toBe(blocks);
  });

  it.each([
    'It costs $5 and $6.',
    'From $5-$6 to $5/month or $6/month',
    '$5, or 6$',
    '$20 million or 30$',
    'US$5 and US$',
    '$HOME/$USER and $PATH',
    'a $ b $ c',
    '\\$5$ and \\$',
    '`$x$` and `\\(x\\)`',
    '```\n$$x$$\n```',
    '    \\[x\\]',
    '\\\\(x\\\\)',
    'an open \\( and an open \\[ and $$ here',
    '$$ $$ and \\(\\)',
    '$a `b$` c$',
  ])('are not in %j', (text) => {
    const html = htmlOf(text);
    expect(formulas(html)).toEqual([]);
    expect(html).not.toContain('formula');
  });

  it('are MathML for readers of screens, without styles, addresses and elements of their own', () => {
    for (const tex of [
      '\\href{javascript:alert(1)}{x}',
      '\\url{javascript:alert(1)}',
      '\\includegraphics{https://c.test/a.png}',
      '\\htmlStyle{color:red}{x} \\htmlClass{a}{x} \\htmlData{a=b}{x}',
      '\\text{<img src=x onerror=alert(1)> style="a"}',
      '\\color{red} \\colorbox{blue}{x} \\fcolorbox{red}{blue}{x} \\rule{9999em}{9999em}',
      '\\begin{array}{|c|c|}\\hline a & b\\\\[99em] c & d\\end{array} \\cancel{x} \\boxed{y} \\raisebox{1em}{z}',
    ]) {
      const tags = [...htmlOf(`\\(${tex}\\)`).matchAll(/<([a-z]+)([^>]*)>/g)];
      for (const [, name, attributes] of tags) {
        expect(name, tex).toMatch(/^(p|span|math|semantics|annotation|m[a-z]+)$/);
        const names = [...attributes!.matchAll(/([\w:-]+)="/g)].map(([, attribute]) => attribute);
        for (const attribute of names)
          expect(attribute, tex).not.toMatch(/^(style|href|src|id|action.*|xlink.*|on.*|data.*|tabindex)$/);
        expect(attributes).not.toContain('9999em');
      }
    }
    expect(htmlOf('\\(x\\)')).toMatch(/<math xmlns="[^"]*"><semantics>/);
  });

  it('that grow are texts until their closing mark, in which nothing is Markdown', () => {
    const text = 'Let \\(a_1 * b * c\\) be. \n\n$$\nx\n\n- y\n$$\n\nEnd';
    const states = Array.from(text, (_, i) => growingHtmlOf(text.slice(0, i + 1)));
    for (const html of states) expect(html).not.toMatch(/<em>|<li>|<ul>/);
    // A formula that has been one stays one.
    const counts = states.map((html) => formulas(html).length);
    expect(counts).toEqual([...counts].sort());
    expect(states.at(-1)).toBe(htmlOf(text));
    expect(growingHtmlOf('So \\[ a_1')).toContain('<span class="formula display is-open" tabindex="0">\\[ a_1</span>');
    // What ends open is text.
    expect(htmlOf('So \\[ *a* is')).toBe('<p>So [ <em>a</em> is</p>\n');
    expect(partsOf('a\n\n\\[\nx\n\n- y\n\\]\n\nb')).toEqual(['a\n', '\\[\nx\n\n- y\n\\]\n', 'b']);
  });

  it('that are hostile are texts', () => {
    for (const tex of [
      '\\def\\a{\\a\\a}\\a',
      '\\newcommand{\\a}{xxxxxxxxxxxxxxxxxxxx}\\a\\a\\a',
      '\\gdef\\a{x}\\a',
      '\\let\\a=b\\a',
      '{'.repeat(60) + 'x' + '}'.repeat(60),
      '\\frac{'.repeat(300),
      '\\left('.repeat(60) + '\\right)'.repeat(60),
      'x'.repeat(4001),
      '\\nosuchcommand{x}',
      '\\frac{a}',
    ]) {
      expect(mathOf(tex, false), tex.slice(0, 30)).toBeUndefined();
      const html = htmlOf(`\\(${tex}\\)`);
      expect(formulas(html)).toEqual([]);
      expect(html).toContain('x'.repeat(tex.includes('x') ? 1 : 0));
    }
    expect(mathOf('\\leftarrow \\longrightarrow \\degree', false)).toContain('⟶');
    const deep = '{'.repeat(100_000) + '}'.repeat(100_000);
    expect(htmlOf(`$$${deep}$$`)).toBe(`<p>$$${deep}$$</p>\n`);
    for (const opens of ['$', '\\(', '\\[', '\\[\n']) expect(formulas(htmlOf(`${opens}a `.repeat(5000)))).toEqual([]);
  });
});
