// The published package's manifest: what it shares with the repository's own is taken from there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { capture, root } from './process.mjs';

/** The repository's address as https, from where it is published or from git; undefined where neither has one. */
export function repositoryOf(env = process.env) {
  const { GITHUB_REPOSITORY: path, GITHUB_SERVER_URL: server = 'https://github.com' } = env;
  if (path) return `${server}/${path}`;
  const origin = capture('git', ['remote', 'get-url', 'origin'], { cwd: root });
  const [, host, rest] =
    /^(?:https:\/\/|git@|ssh:\/\/git@)([\w.-]+)[/:]([\w./-]+?)(?:\.git)?$/.exec(origin ?? '') ?? [];
  return host && `https://${host}/${rest}`;
}

/** Where the package's files are, by condition; types first, as TypeScript takes what fits first. */
const places = {
  '.': { types: './types/index.d.ts', node: './node.js', default: './index.js' },
  './worker': { node: './node-worker.js', default: './worker.js' },
  './worker.js': './worker.js',
  './offline': { types: './types/offline.d.ts', default: './offline.js' },
  './*.wasm': './*.wasm',
  './package.json': './package.json',
};

export function manifestOf(env = process.env) {
  const { name, version, description, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const repository = repositoryOf(env);
  return {
    name,
    version,
    description,
    keywords: [
      'llm',
      'language-model',
      'inference',
      'webassembly',
      'wasm',
      'gguf',
      'quantization',
      'browser',
      'offline',
    ],
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
