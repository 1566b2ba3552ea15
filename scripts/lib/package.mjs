// The publishable package in dist/: ES modules that need no bundler, their types, and the WebAssembly modules.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { packageSources, wasmFiles } from './build.mjs';
import { root, runTool } from './process.mjs';

const dist = join(root, 'dist');

export async function buildPackage() {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  const emit = ['--noEmit', 'false', '--declaration', '--sourceMap', '--inlineSources', '--outDir', dist];
  await runTool('tsc', ['-p', 'web', ...emit]);
  // The one dependency lies inside, in place of the module that re-exports it.
  const comlink = join(root, 'node_modules', 'comlink');
  for (const made of ['comlink.js.map', 'comlink.d.ts']) rmSync(join(dist, made));
  const text = readFileSync(join(comlink, 'dist', 'esm', 'comlink.min.mjs'), 'utf8');
  writeFileSync(join(dist, 'comlink.js'), text.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''));
  copyFileSync(join(comlink, 'LICENSE'), join(dist, 'LICENSE.comlink'));
  for (const name of wasmFiles) copyFileSync(join(packageSources, name), join(dist, name));
  for (const name of ['LICENSE', 'README.md', 'THIRD_PARTY_NOTICES.md'])
    copyFileSync(join(root, name), join(dist, name));
  const { name, version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const manifest = {
    name,
    version,
    description,
    license,
    type: 'module',
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './*.js': './*.js',
      './*.wasm': './*.wasm',
      './package.json': './package.json',
    },
    types: './index.d.ts',
    sideEffects: ['./worker.js', './qsf-*-threads.js'],
  };
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  console.log(`The package is in ${dist}.`);
}
