// TeX as MathML by KaTeX, in a file of its own that is fetched with the first formula.

import katex from 'katex';

/** The longest formula in characters, and the deepest braces in it. A page stays responsive up to these. */
const LONGEST = 4000;
const DEEPEST = 50;
/** Expansions of macros. KaTeX's own macros need a few for each command. */
const EXPANSIONS = 1000;
/** The largest size that a formula may ask for, in em. */
const LARGEST = 20;

/** Definitions, by which a short text becomes one of any length. Answers need none. */
const DEFINES = /\\(?:[gex]?def|(?:future)?let|(?:re)?newcommand|providecommand)(?![a-z])/i;

/** Returns a formula as MathML, which has no address or style of the formula's own. Undefined if it is none. */
export function mathOf(tex: string, display: boolean): string | undefined {
  if (tex.length > LONGEST || DEFINES.test(tex) || depthOf(tex) > DEEPEST) return undefined;
  try {
    const html = katex.renderToString(tex, {
      ...{ displayMode: display, output: 'mathml', throwOnError: true, trust: false, strict: 'ignore' },
      ...{ maxExpand: EXPANSIONS, maxSize: LARGEST },
    });
    // The page's policy forbids styles in attributes. KaTeX escapes the quotes of a text.
    return html.replace(/ style="[^"]*"/g, '');
  } catch {
    return undefined;
  }
}

function depthOf(tex: string): number {
  let [depth, deepest] = [0, 0];
  for (const [mark] of tex.matchAll(/\\(?:left|begin|right|end)|\\.|[{}]/gs)) {
    if (/^(\{|\\left|\\begin)$/.test(mark)) deepest = Math.max(deepest, ++depth);
    if (/^(\}|\\right|\\end)$/.test(mark)) depth--;
  }
  return deepest;
}
