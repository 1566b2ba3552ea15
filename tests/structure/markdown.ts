// What documents name: links, code spans, commits, tables.
import { read } from './files.js';

export interface Named {
  path: string;
  number: number;
  /** The link's target, the span's code, or the commit. */
  text: string;
}

/** Returns the lines of a document that are not in code blocks. */
export function linesOf(path: string): { number: number; text: string }[] {
  let fenced = false;
  return read(path)
    .split('\n')
    .flatMap((text, i) => {
      if (/^\s*```/.test(text)) {
        fenced = !fenced;
        return [];
      }
      return fenced ? [] : [{ number: i + 1, text }];
    });
}

function named(path: string, pattern: RegExp, strip: (text: string) => string = (text) => text): Named[] {
  return linesOf(path).flatMap(({ number, text }) =>
    [...strip(text).matchAll(pattern)].map(([, found = '']) => ({ path, number, text: found })),
  );
}

const withoutSpans = (text: string) => text.replace(/`[^`]*`/g, '``');

/** Returns the targets of links that are relative. */
export const links = (path: string) =>
  named(path, /\]\(([^)\s]+)\)/g, withoutSpans).filter(({ text }) => !/^[a-z]+:/.test(text));

/** Returns inline code. A table's column with one of these heads is left out. */
export function spans(path: string, ...withoutColumns: string[]): Named[] {
  let dropped: number[] = [];
  return linesOf(path).flatMap(({ number, text }) => {
    let line = text;
    if (!text.startsWith('|')) dropped = [];
    else {
      const cells = cellsOf(text);
      const heads = cells.flatMap((cell, i) => (withoutColumns.includes(cell) ? [i] : []));
      if (heads.length > 0) dropped = heads;
      line = cells.filter((_, i) => !dropped.includes(i)).join(' | ');
    }
    return [...line.matchAll(/`([^`]+)`/g)].map(([, found = '']) => ({ path, number, text: found }));
  });
}

/** Returns abbreviated hashes of commits. */
export const commits = (path: string) =>
  named(path, /(?<![\w.#/-])([0-9a-f]{7,40})(?![\w.-]*[\w-])/g).filter(
    ({ text }) => /[a-f]/.test(text) && /\d/.test(text),
  );

/** Returns the identifiers by which a document's headings can be linked to. */
export function anchors(path: string): Set<string> {
  const seen = new Map<string, number>();
  return new Set(
    linesOf(path).flatMap(({ text }) => {
      const heading = /^#+ (.*)$/.exec(text)?.[1];
      if (heading === undefined) return [];
      const slug = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-');
      const before = seen.get(slug) ?? 0;
      seen.set(slug, before + 1);
      return [before === 0 ? slug : `${slug}-${String(before)}`];
    }),
  );
}

/** Returns the cells of a table's row. */
function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

/** Returns rows that have another number of cells than their table's head, and rows without a head. */
export function brokenRows(path: string): string[] {
  const wrong: string[] = [];
  let columns = 0;
  let previous = { number: 0, cells: 0 };
  for (const { number, text } of linesOf(path)) {
    if (!/^\s*\|/.test(text)) {
      if (columns === 0 && previous.cells !== 0) wrong.push(`${path}:${String(previous.number)}: no table`);
      columns = 0;
      previous = { number, cells: 0 };
      continue;
    }
    const cells = cellsOf(text).length;
    const isRule = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/.test(text);
    if (columns === 0 && isRule && previous.cells !== 0) columns = previous.cells;
    else if (columns === 0 && previous.cells !== 0) wrong.push(`${path}:${String(previous.number)}: no table`);
    if (columns !== 0 && cells !== columns) {
      wrong.push(`${path}:${String(number)}: ${String(cells)} cells, the head has ${String(columns)}`);
    }
    previous = { number, cells };
  }
  return wrong;
}
