// What holds for every source file, and for what is made from others.
import { describe, expect, it } from 'vitest';

import { generated } from '../../scripts/docs.mjs';
import { paths, read, sources } from './files.js';

const made = await generated();
const longest = 500;
const code = [
  '.cpp',
  '.h',
  '.inl',
  '.def',
  '.c',
  '.ts',
  '.mjs',
  '.js',
  '.css',
  '.html',
  '.cmake',
  'CMakeLists.txt',
  '.py',
];

describe('source files', () => {
  it(`have at most ${String(longest)} lines`, () => {
    const files = sources(...code);
    expect(files.length).toBeGreaterThan(50);
    const long = files.map((path) => ({ path, lines: read(path).split('\n').length - 1 }));
    expect(long.filter(({ lines }) => lines > longest)).toEqual([]);
  });

  it('of the package begin and end the sentences of errors as the engine does, because both reach the same users', () => {
    const made = /new QSFError\(\s*'\w+',\s*(?:['`](?:The|A|An|This|There|No|Nothing) |[^;]*?[^.]\.['`][,)])/g;
    const wrong = sources('.ts')
      .filter((path) => path.startsWith('web/src/'))
      .flatMap((path) => [...read(path).matchAll(made)].map(([text]) => `${path}: ${text}`));
    expect(wrong).toEqual([]);
  });

  it('name no package registry or mirror and no path of one machine', () => {
    const hosts = /\b(?:registry|deb|archive|mirrors?|security|ports)\.[\w-]+\.(?:org|com|net)\b/;
    const places = /(?:^|[\s"'`(=:])\/(?:root|work|home\/[a-z]+|opt\/lab)\//m;
    const texts = sources(...code, '.md', '.json', '.npmrc', '.yml', '.txt', '.ci/run');
    const wrong = texts.filter((path) => hosts.test(read(path)) || places.test(read(path)));
    expect(wrong).toEqual([]);
  });

  it('hold no addresses in lock files, so that any mirror serves', () => {
    for (const path of paths.filter((path) => path.endsWith('package-lock.json')))
      expect(read(path), path).not.toContain('"resolved"');
  });

  it('lock the packages of each example, except the package itself, which is in no registry', () => {
    interface Manifest {
      dependencies?: Record<string, string>;
      devDependencies?: Record<string, string>;
    }
    for (const path of paths.filter((path) => /^examples\/[^/]+\/package\.json$/.test(path))) {
      const { dependencies = {}, devDependencies = {} } = JSON.parse(read(path)) as Manifest;
      const all = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => name !== 'qsf');
      const lock = path.replace('package.json', 'package-lock.json');
      if (all.length === 0 && !paths.includes(lock)) continue;
      const { packages } = JSON.parse(read(lock)) as { packages: Record<string, Manifest> };
      const locked = { ...packages['']!.dependencies, ...packages['']!.devDependencies };
      expect(Object.entries(locked).sort(), lock).toEqual(all.sort());
    }
  });

  it('are free of files that no one meant to keep', () => {
    expect(paths.filter((path) => /\.(orig|rej|log|tmp|swp|pyc|o|a|so|wasm)$/.test(path))).toEqual([]);
  });
});

describe('generated files', () => {
  it.each(Object.entries(made))('%s is what the sources give (npm run docs)', (path, text) => {
    expect(read(path)).toBe(text);
  });
});

describe('workflows', () => {
  it('name the actions that they use by digest', () => {
    const used = sources('.yml').flatMap((path) =>
      [...read(path).matchAll(/^\s*-?\s*uses: (.*)$/gm)].map(([, name]) => name),
    );
    expect(used.length).toBeGreaterThan(5);
    expect(used.filter((name = '') => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v/.test(name))).toEqual([]);
  });
});

describe('version', () => {
  it('is the same in CMake and package.json', () => {
    const [, version] = /^project\(qsf VERSION ([\d.]+)/m.exec(read('CMakeLists.txt')) ?? [];
    expect((JSON.parse(read('package.json')) as { version: string }).version).toBe(version);
  });
});

describe('notices', () => {
  it('name every library that is compiled in', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const headers = [...read('native/CMakeLists.txt').matchAll(/find_path\(QSF_(\w+)_INCLUDE/g)].map(
      ([, name = '']) => name,
    );
    const notices = read('THIRD_PARTY_NOTICES.md').toLowerCase();
    const named = [
      ...Object.keys(dependencies),
      ...headers,
      'lz4',
      'emscripten',
      'musl',
      'libc++',
      'llama.cpp',
      'mingw',
    ];
    expect(named.length).toBeGreaterThan(6);
    for (const name of named) expect(notices).toContain(name.toLowerCase());
  });
});
