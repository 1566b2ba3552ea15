#!/usr/bin/env node
// Checks how the sources are written; with --fix puts right what can be.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildFolder } from './lib/build.mjs';
import { Stop, capture, isMain, main, root, run, runTool } from './lib/process.mjs';

/** Paths of the project's files that match git patterns, those not yet added included. */
export function files(...patterns) {
  const list = capture('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: root,
  });
  if (list === null) throw new Stop('The sources are listed with git, but this folder is not a git checkout.');
  return list.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
}

/** C++: layout. */
export const clangFormat = (fix) =>
  run('clang-format-19', [...(fix ? ['-i'] : ['--dry-run', '--Werror']), ...files('*.cpp', '*.h', '*.inl')], {
    name: 'clang-format-19',
  });

/** C++: likely mistakes, in what the native build in build/ compiles, the sources that it generates included. */
export const clangTidy = () => {
  const build = buildFolder('release');
  return run('run-clang-tidy-19', [
    '-quiet',
    '-p',
    build,
    '-extra-arg=-Wno-ignored-gch', // headers that GCC has precompiled
    `^(${root}|${build})/(engine|converter|native|system|threads)/.*\\.cpp$`,
  ]);
};

/** TypeScript and JavaScript: layout, likely mistakes, types. */
export async function typeScript(fix) {
  const written = files('*.ts', '*.mjs', '*.js', '*.css', '*.html', 'package.json', '*tsconfig.json');
  await runTool('prettier', [fix ? '--write' : '--check', '--log-level=warn', ...written]);
  await runTool('eslint', [...(fix ? ['--fix'] : []), '--max-warnings=0', '.']);
  for (const config of files('*tsconfig.json')) await runTool('tsc', ['--noEmit', '-p', config]);
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const fix = process.argv.includes('--fix');
    await clangFormat(fix);
    await typeScript(fix);
    if (existsSync(join(buildFolder('release'), 'compile_commands.json'))) await clangTidy();
  });
}
