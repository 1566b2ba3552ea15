// Documents: lengths, habits of prose, and that everything they name exists.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { describe, expect, it } from 'vitest';

import { tarballOf } from '../../scripts/lib/manifest.mjs';
import { paths, read, root, sources } from './files.js';
import { anchors, brokenRows, commits, links, linesOf, spans } from './markdown.js';
import type { Named } from './markdown.js';
import { comments, excess, proseOf } from './prose.js';

const documents = sources('.md').filter((path) => !path.startsWith('tests/'));
const api = /^docs\/reference\/api\//;
const notices = /^(?:CHANGELOG|THIRD_PARTY_NOTICES)\.md$/;
const notes = /^docs\/notes\//;

/** Documents whose names are those of their date, or come from sources that are checked themselves. */
const isDated = (path: string) => notes.test(path) || path.startsWith('docs/decisions/') || notices.test(path);
const current = documents.filter((path) => !isDated(path) && !api.test(path));
const place = ({ path, number, text }: Named) => `${path}:${String(number)}: ${text}`;

describe('lengths', () => {
  const lines = (path: string) => read(path).split('\n').length - 1;
  const words = (path: string) => linesOf(path).reduce((sum, { text }) => sum + (text.match(/\S+/g)?.length ?? 0), 0);
  const inFolder = (name: string) => documents.filter((path) => path.startsWith(`docs/${name}/`));

  it.each<[string, number]>([
    ['docs/status.md', 80],
    ['docs/architecture.md', 130],
    ['docs/style.md', 120],
    ...inFolder('decisions').map((path) => [path, 60] as [string, number]),
  ])('%s has at most %i lines', (path, most) => {
    expect(lines(path)).toBeLessThanOrEqual(most);
  });

  it('a page of internals has at most 1,500 words', () => {
    const pages = inFolder('internals');
    expect(pages.length).toBeGreaterThan(10);
    expect(pages.filter((path) => words(path) > 1500)).toEqual([]);
  });

  it('a line of prose has at most 128 characters', () => {
    const generated = ['benchmarks', 'boundary', 'errors', 'quality'].map((name) => `docs/reference/${name}.md`);
    const long = [...current, ...inFolder('decisions'), ...inFolder('notes')]
      .filter((path) => !generated.includes(path))
      .flatMap((path) => proseOf(path))
      .filter(({ text }) => text.length > 128 && !text.includes('<!-- made: '));
    expect(long.map(place)).toEqual([]);
  });
});

describe('prose', () => {
  /** The most uses of each habit for every 1,000 words. */
  const most = 0.3;
  const ceilings = {
    'a clause as a noun': most,
    beside: most,
    behind: most,
    told: most,
    lies: most,
    'fronted Of': most,
  };

  it('of documents has at most 0.3 of each habit for every 1,000 words', () => {
    const prose = documents
      .filter((path) => !api.test(path) && !notices.test(path) && !notes.test(path))
      .flatMap(proseOf);
    expect(prose.length).toBeGreaterThan(1000);
    expect(excess(prose, ceilings)).toEqual([]);
  });

  it('of comments has at most 0.3 of each habit for every 1,000 words', () => {
    const prose = comments();
    expect(prose.length).toBeGreaterThan(1000);
    expect(excess(prose, ceilings)).toEqual([]);
  });
});

describe('links', () => {
  const all = documents.flatMap(links).map((link) => {
    const [target = '', anchor] = link.text.split('#');
    const file = target === '' ? link.path : normalize(join(dirname(link.path), target)).replace(/\/$/, '');
    return { ...link, file, anchor };
  });

  it('lead to files and headings that exist', () => {
    const dead = all.filter(({ file, anchor }) => {
      if (!existsSync(join(root, file))) return true;
      return anchor !== undefined && file.endsWith('.md') && !anchors(file).has(anchor);
    });
    expect(dead.map(place)).toEqual([]);
  });

  it('lead to every page of docs/', () => {
    const linked = new Set(all.filter(({ path, file }) => path !== file).map(({ file }) => file));
    expect(documents.filter((path) => path.startsWith('docs/') && !linked.has(path))).toEqual([]);
  });
});

describe('names', () => {
  const all = current.flatMap((path) => spans(path, 'name from now on', 'Highway'));
  /** Folders of builds and packages, and of other machines. */
  const elsewhere = /^(?:build|dist|node_modules|public|model)\b/;
  const topNames = new Set(paths.map((path) => path.split('/')[0] ?? ''));
  const fileNames = new Set(paths.map((path) => path.slice(path.lastIndexOf('/') + 1)));
  const ofSource = /\.(?:cpp|h|inl|inc|def|ts|mjs|cmake|py)$/;
  const folders = ['', 'include/', 'engine/', 'tests/'];

  /** Whether a path of the checkout has this form; `*` and `<name>` stand for any part. */
  function isPath(text: string): boolean {
    const form = text.replace(/\/$/, '');
    if (!/[*<]/.test(form)) return folders.some((folder) => existsSync(join(root, folder, form)));
    const pattern = form.replace(/[.+^$()[\]\\]/g, '\\$&').replace(/<\w+>|\*/g, '[^/]+');
    return paths.some((path) => new RegExp(`^${pattern}$`).test(path));
  }

  it('of paths exist', () => {
    const named = all.filter(
      ({ text }) => /^[\w<*][\w.<>*-]*(?:\/[\w.<>*-]+)*\/?$/.test(text) && !elsewhere.test(text),
    );
    const wrong = named.filter(({ text }) => {
      const [top = ''] = text.split('/');
      const isFile = ofSource.test(text);
      if (!text.includes('/')) return isFile && !/[*<]/.test(text) && !fileNames.has(text);
      return (topNames.has(top) || isFile) && !isPath(text);
    });
    expect(named.length).toBeGreaterThan(200);
    expect(wrong.map(place)).toEqual([]);
  });

  /** Names of other programs, of systems and of notations that documents explain. */
  const foreign = new Set([
    'crossOriginIsolated', // browsers
    'crossOriginStorage',
    'optimizeDeps', // Vite
    'readOnly', // JSON Schema
  ]);

  /** Every source's text, without this test's own. */
  const texts = sources(
    ...['.cpp', '.h', '.inl', '.inc', '.def', '.c', '.in', '.ts', '.mjs', '.js', '.json', '.cmake', '.txt'],
  )
    .concat('tests/data/recipes/toy.json')
    .filter((path) => path !== 'tests/structure/docs.test.ts' && !/(?:unicode|grids)\w*\.inc$|-lock\.json$/.test(path))
    .map((path) => ({ path, text: read(path) }));

  it('of C++ and TypeScript occur in a source', () => {
    const words = new Set([...fileNames].map((name) => name.replace(/\..*$/, '')));
    for (const { text } of texts) for (const word of text.match(/[A-Za-z_]\w*/g) ?? []) words.add(word);
    const humps = /^[a-z0-9]+(?:_[a-z0-9]+)+$|^k?[a-z0-9]*(?:[A-Z][a-z0-9]+){2,}$|^[a-z]+[A-Z]\w*$/;
    const missing = all.flatMap((span) =>
      [...span.text.matchAll(/(?<![\w$.-])([A-Za-z_]\w*)(::|\()?/g)]
        .filter(([, name = '', after]) => after !== undefined || humps.test(name))
        .filter(([, name = '']) => !words.has(name) && !foreign.has(name))
        .map(([, name = '']) => `${place(span)} (${name})`),
    );
    expect(words.size).toBeGreaterThan(5000);
    expect(missing).toEqual([]);
  });

  it('that a path follows in brackets occur in its file', () => {
    const named = current.flatMap((path) =>
      [...read(path).matchAll(/`([A-Za-z_][\w.:]*)(?:\(\))?`\s+\(`([\w./-]+\.\w+)`\)/g)].map(
        ([, name = '', file = '']) => ({
          where: `${path}: ${name} (${file})`,
          word: name.replace(/^.*[.:]/, ''),
          text: texts.find((source) => folders.some((folder) => source.path === folder + file))?.text,
        }),
      ),
    );
    expect(named.filter(({ text }) => text !== undefined).length).toBeGreaterThan(50);
    const wrong = named.filter(({ text, word }) => text !== undefined && !new RegExp(`\\b${word}\\b`).test(text));
    expect(wrong.map(({ where }) => where)).toEqual([]);
  });

  it('of options occur in a source', () => {
    const named = all.flatMap((span) =>
      [...span.text.matchAll(/(?<!\S)--[a-z][\w-]+/g)].map(([text]) => ({ ...span, text })),
    );
    expect(named.length).toBeGreaterThan(100);
    const missing = named.filter(
      ({ text }) => !texts.some((source) => !/[._]test\.(?:cpp|ts)$/.test(source.path) && source.text.includes(text)),
    );
    expect(missing.map(place)).toEqual([]);
  });

  it('of commits exist, if the history is here', () => {
    const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
    if (git('rev-parse', '--is-shallow-repository').stdout.trim() !== 'false') return;
    const named = documents.filter((path) => !notices.test(path)).flatMap(commits);
    const asked = named.map(({ text }) => `${text}^{commit}\n`).join('');
    const { stdout } = spawnSync('git', ['cat-file', '--batch-check'], { cwd: root, encoding: 'utf8', input: asked });
    const missing = stdout.split('\n').flatMap((line, i) => (line.endsWith(' missing') && named[i] ? [named[i]] : []));
    expect(named.length).toBeGreaterThan(5);
    expect(missing.map(place)).toEqual([]);
  });
});

describe('tables', () => {
  it('are whole: each row has the cells of its head', () => {
    expect(documents.flatMap(brokenRows)).toEqual([]);
  });
});

describe('the page of the TypeScript interface', () => {
  const page = read('docs/reference/api/typescript.md');
  const named = (path: string, pattern: RegExp) => [...read(path).matchAll(pattern)].map(([, name = '']) => name);

  it('has the methods of QSF.cache', () => {
    const methods = named('web/src/page/cache.ts', /^ {2}async (\w+)\(/gm);
    expect(methods).toContain('prune');
    const [, part = ''] = /^## `QSF\.cache`$([^]*?)^## /m.exec(page) ?? [];
    expect(methods.filter((name) => !part.includes(`async ${name}(`))).toEqual([]);
  });

  it('has what every entry of the package exports', () => {
    const names = named('web/src/offline.ts', /^export (?:function|interface) (\w+)/gm);
    expect(names).toContain('serveOffline');
    expect(names.filter((name) => !page.includes(`## \`${name}\``))).toEqual([]);
  });
});

it('the package is said to be in no registry', () => {
  const shown = [...documents.filter((path) => !notices.test(path)), 'web/demo/index.html'];
  expect(shown.filter((path) => /npm (?:install|i|add) qsf\b/.test(read(path)))).toEqual([]);
});

it.each([
  ['qsf', 'qsf-1.2.3.tgz'],
  ['@owner/qsf', 'owner-qsf-1.2.3.tgz'],
])('the commands name the file that npm packs for %s', (name, file) => {
  expect(tarballOf(name, '1.2.3')).toBe(file);
});
