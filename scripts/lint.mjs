#!/usr/bin/env node
// Checks the form of the sources; with --fix, repairs as much as possible.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildFolder } from './lib/build.mjs';
import { installLocked } from './lib/npm.mjs';
import { Stop, capture, isMain, main, root, run, runTool } from './lib/process.mjs';
import { clangTidy } from './lib/tidy.mjs';

/** Returns the paths of the project's files that match git patterns, including files that are not yet added. */
export function files(...patterns) {
  const list = capture('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: root,
  });
  if (list === null) throw new Stop('The sources are listed with git, but this folder is not a git checkout.');
  return list.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
}

/** Checks C++: layout. */
export const clangFormat = (fix) =>
  run('clang-format-19', [...(fix ? ['-i'] : ['--dry-run', '--Werror']), ...files('*.cpp', '*.h', '*.inl')], {
    name: 'clang-format-19',
  });

/** Checks TypeScript and JavaScript: layout, likely mistakes, types. */
export async function typeScript(fix) {
  const written = files('*.ts', '*.mjs', '*.js', '*.css', '*.html', 'package.json', '*tsconfig.json');
  await runTool('prettier', [fix ? '--write' : '--check', '--log-level=warn', ...written]);
  await runTool('eslint', [...(fix ? ['--fix'] : []), '--max-warnings=0', '.']);
  await installLocked(join(root, 'tests', 'adapters')); // whose types its tests are compared with
  for (const config of files('*tsconfig.json')) await runTool('tsc', ['--noEmit', '-p', config]);
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const fix = process.argv.includes('--fix');
    await clangFormat(fix);
    await typeScript(fix);
    const everything = process.argv.includes('--everything');
    const isBuilt = existsSync(join(buildFolder('release'), 'compile_commands.json'));
    if (everything || isBuilt) await clangTidy({ everything });
  });
}
