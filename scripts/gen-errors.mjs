#!/usr/bin/env node
// Writes errors.md and web/src/errors.gen.ts from include/qsf/base/errors.def. With --check, only reports whether they
// are current.
import { readRows, writeGenerated } from './lib/generated.mjs';
import { Stop, isMain, main } from './lib/process.mjs';
import { reference } from './lib/reference.mjs';

const source = 'include/qsf/base/errors.def';

/** Returns the list's entries: `{name, number, meaning}`. */
export function readErrors(text) {
  const entries = readRows(source, ['QSF_ERROR'], text).map(({ args: [name, number, meaning], line }) => {
    if (!/^\d+$/.test(number) || !meaning) {
      throw new Stop(`${source}: this line is not QSF_ERROR(name, number, "meaning"): ${line}`);
    }
    return { name, number: Number(number), meaning };
  });
  for (const key of ['name', 'number']) {
    if (new Set(entries.map((entry) => entry[key])).size !== entries.length) {
      throw new Stop(`${source}: two errors have the same ${key}.`);
    }
  }
  return entries;
}

/** Returns the text of each generated file, by its path. */
export function generated(entries = readErrors()) {
  const rows = entries.map(({ name, number, meaning }) => `| ${number} | \`${name}\` | ${meaning} |`);
  const members = entries.map(({ name, number, meaning }) => `  /** ${meaning} */\n  ${name}: ${number},`);
  return {
    [`${reference}/errors.md`]: `<!-- Made by scripts/gen-errors.mjs from ${source}. -->

# Errors

Every failure is one of these codes with a sentence that names the field and the value. The numbers are stable. The C API returns
them. \`QSFError\` in JavaScript has the number as \`number\` and the name as \`code\`. \`qsf-run\` and \`qsf-convert\` print the name
before the sentence.

| Number | Name | Meaning |
| -----: | ---- | ------- |
${rows.join('\n')}
`,
    'web/src/errors.gen.ts': `// Made by scripts/gen-errors.mjs from ${source}.
export const errorNumbers = {
${members.join('\n')}
} as const;
`,
  };
}

if (isMain(import.meta.url)) await main(() => writeGenerated(generated(), source, 'scripts/gen-errors.mjs'));
