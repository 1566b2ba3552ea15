#!/usr/bin/env node
// Writes files from the sources: the API pages, errors.md and boundary.md with their TypeScript twins, and the lists
// between markers in other documents. With --check, only reports whether they are current.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { generated as boundary } from './gen-boundary.mjs';
import { generated as errors } from './gen-errors.mjs';
import { generated as hub } from './gen-hub.mjs';
import { pages } from './lib/doc-api.mjs';
import { documents, filled } from './lib/doc-tables.mjs';
import { Stop, isMain, main, root } from './lib/process.mjs';

/** Steps that return the text of generated files by their paths. The API pages read the TypeScript of the first one. */
const steps = [
  () => ({ ...errors(), ...boundary(), ...hub() }),
  () => Object.fromEntries(documents.map((path) => [path, filled(path)])),
  pages,
];

/** Returns the text of each generated file, by its path. */
export const generated = async () => Object.assign({}, ...(await Promise.all(steps.map((step) => step()))));

if (isMain(import.meta.url)) {
  await main(async () => {
    const check = process.argv.includes('--check');
    for (const step of steps) {
      for (const [path, text] of Object.entries(await step())) {
        const file = join(root, path);
        if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
        if (check) throw new Stop(`${path} is not what the sources give; run \`npm run docs\`.`);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
        console.log(path);
      }
    }
  });
}
