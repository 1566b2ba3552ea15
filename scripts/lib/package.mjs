// The publishable package in dist/: a module for pages and one for Node, each with the script of its worker, their types,
// and the WebAssembly modules beside them.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { packageSources, wasmFiles } from './build.mjs';
import { manifestOf } from './manifest.mjs';
import { Stop, root, runTool } from './process.mjs';

export const dist = join(root, 'dist');

/** The package's modules by what they are called in dist/. Node's have what is in node/ in place of what it replaces. */
const entries = {
  'index.js': { source: 'index.ts', platform: 'browser' },
  'worker.js': { source: 'worker.ts', platform: 'browser' },
  'offline.js': { source: 'offline.ts', platform: 'browser' },
  'node.js': { source: 'index.ts', platform: 'node' },
  'node-worker.js': { source: 'node/worker.ts', platform: 'node' },
};

/** What Node has of its own, beside what it replaces by the same name. */
const replaced = ['platform', 'worker-platform'];

const inNode = {
  name: 'node',
  resolveId(id, importer) {
    const name = replaced.find((part) => id === `./${part}.js`);
    if (name === undefined || !importer || dirname(importer) !== packageSources) return null;
    return join(packageSources, 'node', `${name}.ts`);
  },
};

/**
 * What starts a module asks where its own script is, by a variable that a second minifier confuses with others (rolldown
 * 1.2). In a worker there is no answer, and none is needed: who starts it says where the module and the script are.
 */
const withoutScriptName = {
  name: 'without-script-name',
  transform(code, id) {
    if (!wasmFiles.includes(basename(id).replace(/\.js$/, '.wasm'))) return null;
    const changed = code
      .replace(/var _scriptName = [^;]*;/, '')
      .replace('if(_scriptName){scriptDirectory=_scriptName}', '')
      .replace('pthreadMainJs=_scriptName', 'pthreadMainJs');
    if (changed.includes('_scriptName')) throw new Stop(`${id} uses its script's name in another way.`);
    return { code: changed, map: null };
  },
};

/** The expressions that bundlers know by their words, which minifying writes as templates; nothing moves by this. */
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

/** Its dependency and the modules' starters lie inside, so that it runs without a bundler and asks for nothing by name. */
async function bundle(file, { source, platform }) {
  const { rolldown } = await import('rolldown');
  const made = await rolldown({
    input: join(packageSources, source),
    platform,
    plugins: [withoutScriptName, ...(platform === 'node' ? [inNode] : [])],
    external: /^node:/,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    tsconfig: join(root, 'web', 'tsconfig.json'),
  });
  const how = { format: 'es', codeSplitting: false, sourcemap: true, comments: false, minify: true };
  await made.write({ file: join(dist, file), ...how, plugins: [plainWords] });
  await made.close();
}

/** Removes the declarations that those of the entries do not lead to. */
function keepReached(folder) {
  const reached = new Set();
  const visit = (name) => {
    if (reached.has(name)) return;
    reached.add(name);
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [, to] of text.matchAll(/(?:from|import)\s*\(?["']\.\/([\w.-]+)\.js["']/g)) visit(`${to}.d.ts`);
  };
  for (const name of ['index.d.ts', 'offline.d.ts']) visit(name);
  for (const name of readdirSync(folder)) if (!reached.has(name)) rmSync(join(folder, name), { recursive: true });
}

export async function buildPackage() {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  for (const [file, entry] of Object.entries(entries)) await bundle(file, entry);
  const types = join(dist, 'types');
  await runTool('tsc', ['-p', 'web', '--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', types]);
  keepReached(types);
  for (const name of wasmFiles) {
    copyFileSync(join(packageSources, name), join(dist, name));
    chmodSync(join(dist, name), 0o644);
  }
  for (const name of ['LICENSE', 'THIRD_PARTY_NOTICES.md']) copyFileSync(join(root, name), join(dist, name));
  copyFileSync(join(root, 'node_modules', 'comlink', 'LICENSE'), join(dist, 'LICENSE.comlink'));
  copyFileSync(join(root, 'web', 'README.md'), join(dist, 'README.md'));
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifestOf(), null, 2)}\n`);
  console.log(`The package is in ${dist}.`);
}
