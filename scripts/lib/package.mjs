// The publishable package in dist/: a module for pages and one for Node, each with its worker's script, their types,
// and the WebAssembly modules.
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { packageSources, wasmFiles } from './build.mjs';
import { smallEntries, manifestOf } from './manifest.mjs';
import { Stop, root, runTool } from './process.mjs';

export const dist = join(root, 'dist');

/**
 * The package's modules by their names in dist/. Those that pages load precede offline.js, which has their digests.
 */
const entries = {
  'index.js': { source: 'index.ts', platform: 'browser' },
  'worker.js': { source: 'worker.ts', platform: 'browser' },
  'offline.js': { source: 'offline.ts', platform: 'browser', digestsOf: ['index.js', 'worker.js', ...wasmFiles] },
  ...Object.fromEntries(smallEntries.map((name) => [`${name}.js`, { source: `${name}.ts`, platform: 'browser' }])),
  'node.js': { source: 'index.ts', platform: 'node' },
  'node-worker.js': { source: 'node/worker.ts', platform: 'node' },
};

/** The files of node/ that Node's modules have in place of others. */
const replaced = new Map(
  [
    ['platform.js', 'platform.ts'],
    ['worker/worker-platform.js', 'worker-platform.ts'],
  ].map(([file, own]) => [join(packageSources, file), join(packageSources, 'node', own)]),
);

const inNode = {
  name: 'node',
  resolveId: (id, importer) => (importer && replaced.get(join(dirname(importer), id))) ?? null,
};

/**
 * Removes from a module's starter the query for the script's own name and what fetches the module. A second minifier
 * confuses the query's variable with others (rolldown 1.2). A worker has no answer to the query and fetches nothing
 * there: its creator passes the addresses, and `instantiateWasm` with a compiled module.
 */
const withoutFetching = {
  name: 'without-fetching',
  transform(code, id) {
    if (!wasmFiles.includes(basename(id).replace(/\.js$/, '.wasm'))) return null;
    const changed = code
      .replace(/var _scriptName = [^;]*;/, '')
      .replace('pthreadMainJs=_scriptName', 'pthreadMainJs')
      .replace(/var readAsync,readBinary;if\(.*?\}else\{\}(?=var )/s, '')
      .replace(/wasmBinaryFile\?\?=findWasmBinary\(\);instantiateAsync\(.*?\.catch\(readyPromiseReject\);/, '');
    for (const [what, pattern] of [
      ["its script's name", /_scriptName/],
      ['a file', /\bfetch\(\w+,\{credentials:"same-origin"\}\)\.then\(response=>\{if|=findWasmBinary\(/],
    ])
      if (pattern.test(changed)) throw new Stop(`${id} asks for ${what} in another way.`);
    return { code: changed, map: null };
  },
};

/** Files of other folders of the sources have no folder in the package. */
const inOneFolder = {
  name: 'in-one-folder',
  transform(code, id) {
    if (!id.startsWith(packageSources)) return null;
    return { code: code.replace(/(new URL\(\s*['"])(?:\.\.?\/)+([\w.-]+['"])/g, '$1./$2'), map: null };
  },
};

/**
 * Keeps the expressions that bundlers recognise by their text. Minifying writes them as templates. Offsets do not
 * change.
 */
const plainWords = {
  name: 'plain-words',
  generateBundle(_, chunks) {
    const plain = (words) => words.replaceAll('`', '"');
    for (const chunk of Object.values(chunks)) {
      if (chunk.type !== 'chunk') continue;
      chunk.code = chunk.code.replace(/new URL\(`[^`$]+`,import\.meta\.url\)(,\{type:`module`,name:`qsf`\})?/g, plain);
    }
  },
};

/**
 * Bundles a file with its dependency and the modules' starters, so that it runs without a bundler and imports nothing
 * by name.
 */
async function bundle(file, { source, platform, digestsOf }) {
  const { rolldown } = await import('rolldown');
  const made = await rolldown({
    input: join(packageSources, source),
    platform,
    plugins: [withoutFetching, inOneFolder, ...(platform === 'node' ? [inNode] : [])],
    external: /^node:/,
    transform: digestsOf && { define: { QSF_DIGESTS: JSON.stringify(digests(digestsOf)) } },
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    tsconfig: join(root, 'web', 'tsconfig.json'),
  });
  const how = { format: 'es', codeSplitting: false, sourcemap: true, comments: false, minify: true };
  await made.write({ file: join(dist, file), ...how, plugins: [plainWords] });
  await made.close();
}

/** Returns the digests of files of dist/ by name, as Subresource Integrity writes them. */
const digests = (names) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      `sha256-${createHash('sha256')
        .update(readFileSync(join(dist, name)))
        .digest('base64')}`,
    ]),
  );

/** Removes the declarations that the entries' declarations do not reach. */
function keepReached(folder) {
  const reached = new Set();
  const visit = (path) => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(path, 'utf8');
    for (const [, to] of text.matchAll(/(?:from|import)\s*\(?["'](\.[\w./-]+)\.js["']/g))
      visit(join(dirname(path), `${to}.d.ts`));
  };
  for (const name of ['index.d.ts', 'offline.d.ts', ...smallEntries.map((name) => `${name}.d.ts`)])
    visit(join(folder, name));
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !reached.has(path)) rmSync(path);
  }
}

export async function buildPackage() {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  for (const name of wasmFiles) {
    copyFileSync(join(packageSources, name), join(dist, name));
    chmodSync(join(dist, name), 0o644);
  }
  for (const [file, entry] of Object.entries(entries)) await bundle(file, entry);
  const types = join(dist, 'types');
  await runTool('tsc', ['-p', 'web', '--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', types]);
  keepReached(types);
  for (const name of ['LICENSE', 'THIRD_PARTY_NOTICES.md']) copyFileSync(join(root, name), join(dist, name));
  copyFileSync(join(root, 'node_modules', 'comlink', 'LICENSE'), join(dist, 'LICENSE.comlink'));
  copyFileSync(join(root, 'web', 'README.md'), join(dist, 'README.md'));
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifestOf(), null, 2)}\n`);
  console.log(`The package is in ${dist}.`);
}
