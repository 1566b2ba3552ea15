#!/usr/bin/env node
// bench-grammar.mjs FOLDER [VOCABULARY] [options of qsf-bench-grammar] builds and runs qsf-bench-grammar over a folder
// of schemas with instances, as MaskBench has them. The vocabulary is a file in tiktoken's form.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildGrammarBench } from './lib/build.mjs';
import { Stop, main, root, run } from './lib/process.mjs';

const usual = join(root, '..', 'shared', 'data', 'tokenizers', 'llama3', 'tokenizer.model');

await main(async () => {
  const words = process.argv.slice(2);
  const [folder, second] = words;
  if (folder === undefined || !existsSync(folder)) throw new Stop('npm run bench:grammar -- FOLDER [VOCABULARY]');
  const named = second !== undefined && !second.startsWith('--');
  const vocabulary = named ? second : usual;
  if (!existsSync(vocabulary)) throw new Stop(`There is no vocabulary ${vocabulary}: name one after the folder.`);
  await buildGrammarBench();
  await run(join(root, 'build', 'bin', 'qsf-bench-grammar'), [folder, vocabulary, ...words.slice(named ? 2 : 1)]);
});
