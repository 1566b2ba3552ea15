// The packed package as registries, bundlers and TypeScript see it.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { wasmFiles } from '../../scripts/lib/build.mjs';
import { manifestOf, repositoryOf } from '../../scripts/lib/manifest.mjs';
import { buildPackage, dist } from '../../scripts/lib/package.mjs';
import { root } from '../../scripts/lib/process.mjs';

const run = promisify(execFile);
const checks = join(root, 'tests', 'package', 'node_modules', '.bin');

/** What a program writes, whatever it ends with. */
async function said(program: string, args: string[], cwd = root): Promise<{ ok: boolean; text: string }> {
  try {
    const { stdout, stderr } = await run(program, args, { cwd, maxBuffer: 1 << 26 });
    return { ok: true, text: stdout + stderr };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { ok: false, text: stdout + stderr };
  }
}

let folder = '';
let tarball = '';
let files: string[] = [];

beforeAll(async () => {
  await buildPackage();
  folder = mkdtempSync(join(tmpdir(), 'qsf-package-'));
  const { stdout } = await run('npm', ['pack', dist, '--json', '--pack-destination', folder], { cwd: folder });
  const [about] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  tarball = join(folder, about.filename);
  files = about.files.map(({ path }) => path);
  await run('tar', ['-xf', tarball, '-C', folder]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (name: string) => readFileSync(join(folder, 'package', name), 'utf8');

describe('the packed package', () => {
  it('satisfies publint', async () => {
    const { ok, text } = await said(join(checks, 'publint'), ['run', tarball, '--strict']);
    expect(text).toMatch(/All good/);
    expect(ok).toBe(true);
  });

  it('has types that are right for every way to import it (are the types wrong)', async () => {
    // ES modules alone: what CommonJS asks for by require() is told so by name. The .wasm files have no types.
    const args = [tarball, '--profile', 'esm-only', '--entrypoints', '.', '--format', 'ascii', '--no-color'];
    const { ok, text } = await said(join(checks, 'attw'), args);
    for (const way of ['node16 (from ESM): 🟢', 'bundler: 🟢']) expect(text).toContain(way);
    expect(ok, text).toBe(true);
  });

  it('holds what it says and the licences of what is inside', () => {
    const { exports, types } = JSON.parse(read('package.json')) as ReturnType<typeof manifestOf>;
    const places = [
      types,
      ...Object.values(exports).flatMap((place) => (typeof place === 'string' ? [place] : Object.values(place))),
    ];
    for (const place of places.filter((path) => !path.includes('*'))) expect(files).toContain(place.slice(2));
    expect(Object.keys(exports['.'])[0]).toBe('types');
    expect(files.filter((path) => path.endsWith('.wasm')).sort()).toEqual([...wasmFiles].sort());
    const notices = read('THIRD_PARTY_NOTICES.md');
    for (const name of ['LZ4', 'Comlink', 'Emscripten', 'musl', 'libc++']) expect(notices).toContain(`${name}`);
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'LICENSE.comlink', 'README.md']));
  });

  it('asks for nothing by name, but for what Node has itself', () => {
    for (const name of ['index.js', 'worker.js', 'offline.js'])
      expect(read(name)).not.toMatch(/(^|;)\s*(import|export)\b[^;]*\bfrom\s*["'`]/m);
    for (const name of ['node.js', 'node-worker.js'])
      for (const [, from] of read(name).matchAll(/(?:^|;)import\b[^;]*?from\s*["'`]([^"'`]+)["'`]/gm))
        expect(from).toMatch(/^node:/);
  });

  it('starts its worker by the one expression that bundlers know', () => {
    const words = /new Worker\(new URL\("\.\/worker\.js",import\.meta\.url\),\{type:"module"/g;
    expect(read('index.js').match(words)).toHaveLength(1);
    expect(read('worker.js')).not.toMatch(/new Worker\(new URL/);
  });

  it.each(wasmFiles)('is small for a page, gzipped, with %s', (module) => {
    const loaded = ['index.js', 'worker.js', module];
    const bytes = loaded.map((name) => gzipSync(readFileSync(join(folder, 'package', name)), { level: 9 }).length);
    expect(bytes.reduce((sum, n) => sum + n)).toBeLessThanOrEqual(250_000);
  });

  it('has no dead links in its README', () => {
    for (const [, to = ''] of read('README.md').matchAll(/\]\(([^)#]+)[^)]*\)/g))
      expect(to.startsWith('https://') || existsSync(join(folder, 'package', to)), to).toBe(true);
  });

  it('can be used from strict TypeScript as the README has it', async () => {
    const modules = join(folder, 'node_modules');
    mkdirSync(modules, { recursive: true });
    await run('cp', ['-r', join(folder, 'package'), join(modules, 'qsf')]);
    const example = /```js\n(import [^`]+)```/.exec(read('README.md'))?.[1] ?? '';
    expect(example).toContain('QSF.load');
    writeFileSync(join(folder, 'use.mts'), example);
    const config = join(folder, 'tsconfig.json');
    for (const [module, moduleResolution] of [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ]) {
      const how = { module, moduleResolution, target: 'es2022', lib: ['es2022', 'dom'], types: [], strict: true };
      writeFileSync(config, JSON.stringify({ compilerOptions: { ...how, noEmit: true }, files: ['use.mts'] }));
      const tsc = join(root, 'node_modules', '.bin', 'tsc');
      expect(await said(tsc, ['-p', config])).toEqual({ ok: true, text: '' });
    }
  });
});

describe('the manifest', () => {
  it('names the repository that it is published from', () => {
    const env = { GITHUB_REPOSITORY: 'someone/qsf', GITHUB_SERVER_URL: 'https://git.example' };
    expect(repositoryOf(env)).toBe('https://git.example/someone/qsf');
    expect(manifestOf(env)).toMatchObject({
      repository: { type: 'git', url: 'git+https://git.example/someone/qsf.git' },
      homepage: 'https://git.example/someone/qsf#readme',
      bugs: 'https://git.example/someone/qsf/issues',
    });
  });
});
