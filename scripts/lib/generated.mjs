// Files that are generated from a list of the engine.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Stop, root } from './process.mjs';

/** The arguments of a macro's call: names, numbers, strings and lists in parentheses, separated by commas. */
const ARGUMENT = /\s*("(?:[^"\\]|\\.)*"|\([^"()]*\)|[^",()\s]+)\s*(,|$)/y;

/** Returns the text of a .def file, with the texts of the lists that it includes in their places. */
export function listText(source) {
  const included = (_, path) => listText(`include/${path}`);
  return readFileSync(join(root, source), 'utf8').replace(/^#include "(.*\.def)"$/gm, included);
}

/**
 * Returns the rows of a .def file whose macros have one of these names, in order: `{macro, args, line}`, strings
 * without quotes.
 * @param {string} source
 * @param {string[]} macros
 */
export function readRows(source, macros, text = listText(source)) {
  const rows = [];
  for (const line of text.split('\n')) {
    const [, macro] = /^(QSF_\w+)/.exec(line) ?? [];
    if (!macro) continue;
    const [, inside] = /^\w+\((.*)\)$/.exec(line) ?? [];
    const args = inside === undefined ? undefined : split(inside);
    if (!args || !macros.includes(macro)) throw new Stop(`${source}: this line is not understood: ${line}`);
    rows.push({ macro, args, line });
  }
  return rows;
}

function split(inside) {
  const args = [];
  for (ARGUMENT.lastIndex = 0; ARGUMENT.lastIndex < inside.length;) {
    const [, argument, end] = ARGUMENT.exec(inside) ?? [];
    if (argument === undefined) return undefined;
    args.push(argument.startsWith('"') ? JSON.parse(argument) : argument);
    if (end === '') break;
  }
  return args;
}

/**
 * Writes files, given as texts by their paths. With --check, only reports whether the files have these texts.
 * @param {Record<string, string>} files
 */
export function writeGenerated(files, source, script) {
  for (const [path, text] of Object.entries(files)) {
    if (!process.argv.includes('--check')) writeFileSync(join(root, path), text);
    else if (readFileSync(join(root, path), 'utf8') !== text) {
      throw new Stop(`${path} is not what ${source} gives; run \`node ${script}\`.`);
    }
  }
}
