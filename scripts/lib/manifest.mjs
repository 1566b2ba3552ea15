// The published package's manifest. The fields that it shares with the repository's own manifest are copied from there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { capture, root } from './process.mjs';

/**
 * Returns the repository's address as https, from the publishing environment or from git; undefined if neither has one.
 */
export function repositoryOf(env = process.env) {
  const { GITHUB_REPOSITORY: path, GITHUB_SERVER_URL: server = 'https://github.com' } = env;
  if (path) return `${server}/${path}`;
  const origin = capture('git', ['remote', 'get-url', 'origin'], { cwd: root });
  const [, host, rest] =
    /^(?:https:\/\/|git@|ssh:\/\/git@)([\w.-]+)[/:]([\w./-]+?)(?:\.git)?$/.exec(origin ?? '') ?? [];
  return host && `https://${host}/${rest}`;
}

/** The adapters, and the parts of retrieval. Each is an entry of one small module that imports nothing. */
export const smallEntries = ['fetch', 'ai-sdk', 'prompt-api', 'retrieval'];

/** The package's files by condition. Types are first, because TypeScript uses the first match. */
const places = {
  '.': { types: './types/index.d.ts', node: './node.js', default: './index.js' },
  './worker': { node: './node-worker.js', default: './worker.js' },
  './worker.js': './worker.js',
  './offline': { types: './types/offline.d.ts', default: './offline.js' },
  ...Object.fromEntries(
    smallEntries.map((name) => [`./${name}`, { types: `./types/${name}.d.ts`, default: `./${name}.js` }]),
  ),
  './*.wasm': './*.wasm',
  './package.json': './package.json',
};

const { name, version, description, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Returns the name of the file that `npm pack` writes for a package, whose name may have a scope. */
export const tarballOf = (packed, version) => `${packed.replace(/^@/, '').replace('/', '-')}-${version}.tgz`;

/** The commands that give an application the package, which is in no registry. Documents and the demo show them. */
export const installation = [
  'npm run build && npm pack ./dist     # in a checkout of QSF',
  `npm install ../qsf/${tarballOf(name, version)}    # in your project`,
];

export function manifestOf(env = process.env) {
  const repository = repositoryOf(env);
  return {
    name,
    version,
    description,
    keywords: ['llm', 'language-model', 'inference', 'webassembly', 'wasm', 'quantization', 'browser', 'offline'],
    license,
    ...(repository && {
      repository: { type: 'git', url: `git+${repository}.git` },
      homepage: `${repository}#readme`,
      bugs: `${repository}/issues`,
    }),
    type: 'module',
    engines: { node: engines.node },
    exports: places,
    main: './index.js',
    types: './types/index.d.ts',
    sideEffects: ['./worker.js', './node-worker.js'],
    publishConfig: { access: 'public' },
  };
}
