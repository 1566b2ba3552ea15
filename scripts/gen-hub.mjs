#!/usr/bin/env node
// Writes web/src/hub.gen.ts from native/made/hub_files.def. With --check, only reports whether it is current.
import { readRows, writeGenerated } from './lib/generated.mjs';
import { Stop, isMain, main } from './lib/process.mjs';

const source = 'native/made/hub_files.def';
const macros = ['QSF_HUB_ENDING', 'QSF_HUB_PART', 'QSF_HUB_OTHER', 'QSF_HUB_SHARE'];

/** Returns the text of each generated file, by its path. */
export function generated() {
  const rows = readRows(source, macros);
  const [endings, parts, others, shares] = macros.map((macro) => rows.filter((row) => row.macro === macro));
  if (parts.length !== 1 || shares.length !== 1) throw new Stop(`${source} must have one part and one share.`);
  const [numerator, denominator] = shares[0].args.map(Number);
  if (!(numerator < denominator)) throw new Stop(`${source}: the share must be below 1.`);
  const list = (all) => `[${all.map(({ args }) => `'${args[0]}'`).join(', ')}]`;
  return {
    'web/src/hub.gen.ts': `// Made by scripts/gen-hub.mjs from ${source}.
/** Endings of models' names, in any case of letters. */
export const hubEndings: readonly string[] = ${list(endings)};
/** The ending of the parts of one model, with zeros for digits. */
export const hubPart = '${parts[0].args[0]}';
/** Words in the names of files that are no models. */
export const hubOthers: readonly string[] = ${list(others)};
/** The share of the budget that weights may take, as a fraction. */
export const hubShare = { numerator: ${numerator}, denominator: ${denominator} } as const;
`,
  };
}

if (isMain(import.meta.url)) await main(() => writeGenerated(generated(), source, 'scripts/gen-hub.mjs'));
