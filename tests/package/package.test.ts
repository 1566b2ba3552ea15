// The packed package as registries, bundlers and TypeScript see it.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { maker, wasmFiles } from '../../scripts/lib/build.mjs';
import { smallEntries, manifestOf, repositoryOf } from '../../scripts/lib/manifest.mjs';
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
    const args = [
      tarball,
      '--profile',
      'esm-only',
      '--entrypoints',
      '.',
      ...smallEntries,
      '--format',
      'ascii',
      '--no-color',
    ];
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
    for (const name of ['index.js', 'worker.js', 'offline.js', ...smallEntries.map((name) => `${name}.js`)])
      expect(read(name)).not.toMatch(/(^|;)\s*(import|export)\b[^;]*\bfrom\s*["'`]/m);
    for (const name of ['node.js', 'node-worker.js'])
      for (const [, from] of read(name).matchAll(/(?:^|;)import\b[^;]*?from\s*["'`]([^"'`]+)["'`]/gm))
        expect(from).toMatch(/^node:/);
  });

  it.each(['index.js', 'worker.js', 'node.js', 'node-worker.js'])(
    'has every file that %s has an address of',
    (name) => {
      const places = [...read(name).matchAll(/new URL\("([^"]+)",import\.meta\.url\)/g)].map(([, place = '']) => place);
      expect(places.length).toBeGreaterThan(0);
      for (const place of places) expect(files.map((file) => `./${file}`)).toContain(place);
    },
  );

  it('has the digests of what pages load, as a service worker asks for them', async () => {
    const { digestsIn } = (await import(join(folder, 'package', 'offline.js'))) as {
      digestsIn: (folder?: string) => Record<string, string>;
    };
    const names = ['index.js', 'worker.js', ...wasmFiles];
    const expected = await Promise.all(
      names.map(async (name) => {
        const digest = await crypto.subtle.digest('SHA-256', readFileSync(join(folder, 'package', name)));
        return [`qsf/${name}`, `sha256-${Buffer.from(digest).toString('base64')}`];
      }),
    );
    for (const place of ['qsf', 'qsf/']) expect(digestsIn(place)).toEqual(Object.fromEntries(expected));
    expect(Object.keys(digestsIn())).toContain('./worker.js');
  });

  it('starts its worker by the one expression that bundlers know', () => {
    const words = /new Worker\(new URL\("\.\/worker\.js",import\.meta\.url\),\{type:"module"/g;
    expect(read('index.js').match(words)).toHaveLength(1);
    expect(read('worker.js')).not.toMatch(/new Worker\(new URL/);
  });

  it.each(wasmFiles)('is small for a page, gzipped, with %s', (module) => {
    const loaded = ['index.js', 'worker.js', module];
    const bytes = loaded.map((name) => gzipSync(readFileSync(join(folder, 'package', name)), { level: 9 }).length);
    expect(bytes.reduce((sum, n) => sum + n)).toBeLessThanOrEqual(475_000);
  });

  it.each(smallEntries)('has an entry %s that is small, because it has nothing of the main entry', (name) => {
    expect(gzipSync(readFileSync(join(folder, 'package', `${name}.js`)), { level: 9 }).length).toBeLessThan(6_000);
    expect(read('index.js')).not.toContain(`${name}.js`);
  });

  it('makes files of other models in a small module', () => {
    const bytes = readFileSync(join(folder, 'package', `${maker}.wasm`));
    expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(256_000);
  });

  it('has no dead links in its README', () => {
    for (const [, to = ''] of read('README.md').matchAll(/\]\(([^)#]+)[^)]*\)/g))
      expect(to.startsWith('https://') || existsSync(join(folder, 'package', to)), to).toBe(true);
  });

  describe('in strict TypeScript', () => {
    const modules = () => join(folder, 'node_modules');
    beforeAll(async () => {
      mkdirSync(modules(), { recursive: true });
      await run('cp', ['-r', join(folder, 'package'), join(modules(), 'qsf')]);
    });

    /** What a compiler says of a program that uses the package. */
    function compiled(tsc: string, program: string, options: object): Promise<{ ok: boolean; text: string }> {
      writeFileSync(join(folder, 'use.mts'), program);
      const config = join(folder, 'tsconfig.json');
      const how = { target: 'es2022', lib: ['es2022', 'dom'], types: [], strict: true, noEmit: true, ...options };
      writeFileSync(config, JSON.stringify({ compilerOptions: how, files: ['use.mts'] }));
      return said(tsc, ['-p', config]);
    }

    it.each([
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ])('can be used as the README has it (%s)', async (module, moduleResolution) => {
      const example = /```js\n(import [^`]+)```/.exec(read('README.md'))?.[1] ?? '';
      expect(example).toContain('QSF.load');
      const tsc = join(root, 'node_modules', '.bin', 'tsc');
      expect(await compiled(tsc, example, { module, moduleResolution })).toEqual({ ok: true, text: '' });
    });

    it.each([
      ['tests/package/node_modules/typescript-5.2', false],
      ['tests/package/node_modules/typescript-5.6', false],
      ['tests/package/node_modules/typescript-5.6', true],
      ['node_modules/typescript', false],
    ])('has the same types for %s (skipLibCheck: %s)', async (compiler, skipLibCheck) => {
      const tsc = join(root, compiler, 'bin', 'tsc');
      const how = { module: 'nodenext', exactOptionalPropertyTypes: true, skipLibCheck };
      expect(await compiled(tsc, CALLS, how)).toEqual({ ok: true, text: '' });
    });

    it.each([true, false])(
      "has OpenAI's types (exactOptionalPropertyTypes: %s)",
      async (exactOptionalPropertyTypes) => {
        await run('cp', ['-r', join(root, 'tests', 'package', 'node_modules', 'openai'), modules()]);
        const tsc = join(root, 'node_modules', '.bin', 'tsc');
        const how = { module: 'nodenext', exactOptionalPropertyTypes, skipLibCheck: true };
        expect(await compiled(tsc, OPENAI, how)).toEqual({ ok: true, text: '' });
      },
    );
  });
});

/** Calls as they are to compile, and as they are not to. */
const CALLS = `
import { Conversation, QSF, QSFError } from 'qsf';
import type { EmbedOptions, GenerateOptions, LoadOptions, NetworkOptions } from 'qsf';
import { digestsIn, serveOffline } from 'qsf/offline';

declare const signal: AbortSignal | undefined;
declare const size: number | undefined;
declare const flag: boolean | undefined;
declare const either: string | string[];
const network: NetworkOptions = { headers: new Headers(), credentials: undefined, retries: size, timeout: size };
const load: LoadOptions = {
  ...{ signal, network, memory: size, maxSeqLen: size, streamAll: flag, shared: flag, kv: undefined, variant: undefined },
  ...{ onProgress: undefined, onWarning: undefined, workerUrl: undefined, wasmUrl: undefined, wasmBinary: undefined },
};
const generate: GenerateOptions = { signal, onPromptProgress: undefined, seed: size, stop: undefined, continue: flag, maxTokens: size };
const embed: EmbedOptions = { signal, pooling: undefined, normalize: flag, addBos: flag };

const llm: QSF = await QSF.load('a.qsf', load);
for await (const piece of llm.generate('a', generate)) piece.trim();
export const text: string = await llm.generate('a', generate);
export const answer: string = await llm.chat('a', { signal, maxTokens: size });
export const later: Promise<string> = llm.chat([{ role: 'user', content: 'a' }]).text();
const talk = llm.conversation({ system: 'a', whenFull: 'drop', maxTokens: size, tools: undefined });
export const said: string = await talk.send('a', { signal });
export const kept: Conversation = Conversation.from(llm, talk.toJSON());
export const left: number = (await talk.countTokens()).left;
await llm.chat.completions.create({ messages: talk.messages });
const { choices } = await llm.chat.completions.create({ messages: [{ role: 'user', content: 'a' }], seed: size });
export const content: string | null | undefined = choices[0]?.message.content;
for await (const chunk of await llm.completions.create({ prompt: 'a', stream: true })) chunk.choices[0]?.text.trim();
export const one: Float32Array = await llm.embed('a', embed);
export const several: Float32Array[] = await llm.embed(['a', [1, 2]]);
export const any: Float32Array | Float32Array[] = await llm.embed(either, embed);
await llm.tokenize('a', { special: flag });
await QSF.cache.prune({ maxAge: size, maxBytes: undefined });
await QSF.load(new Uint8Array(3), { wasmBinary: new Uint8Array(3) });
await QSF.load(new ArrayBuffer(3), { wasmBinary: new ArrayBuffer(3) });
export const url: string | undefined = new QSFError('bad_magic', 'x', { url: undefined }).url;
export const back: Promise<void> = llm.rewind(3);
serveOffline({ version: '1', files: ['worker.js'], integrity: digestsIn() });

// @ts-expect-error: no model
await QSF.load({});
// @ts-expect-error: a list
await QSF.load(['a.qsf']);
// @ts-expect-error: an address in place of bytes
await QSF.load('a.qsf', { wasmBinary: 'a.wasm' });
// @ts-expect-error: one text is one embedding
export const wrong: Float32Array[] = await llm.embed('a');
`;

/** Parameters of the published types are taken, and what comes back has the published types. */
const OPENAI = `
import type OpenAI from 'openai';
import { QSF } from 'qsf';

declare const llm: QSF;
declare const messages: OpenAI.ChatCompletionMessageParam[];
declare const chat: OpenAI.ChatCompletionCreateParamsNonStreaming;
declare const chunked: OpenAI.ChatCompletionCreateParamsStreaming;
declare const text: OpenAI.CompletionCreateParamsNonStreaming;
declare const embedding: OpenAI.EmbeddingCreateParams;
declare const signal: AbortSignal;

export const answer: OpenAI.ChatCompletion = await llm.chat.completions.create(chat, { signal });
messages.push(answer.choices[0]!.message);
for await (const chunk of await llm.chat.completions.create(chunked)) {
  const published: OpenAI.ChatCompletionChunk = chunk;
  published.choices[0]?.delta.tool_calls?.[0]?.function?.arguments?.trim();
}
export const whole: OpenAI.ChatCompletion = await llm.chat.completions.create({ messages, model: 'x', temperature: null });
export const continued: OpenAI.Completion = await llm.completions.create(text);
export const vectors: OpenAI.CreateEmbeddingResponse = await llm.embeddings.create({ ...embedding, encoding_format: 'float' });
await llm.embeddings.create(embedding);

// @ts-expect-error: no messages
await llm.chat.completions.create({ model: 'x' });
// @ts-expect-error: not a parameter
await llm.chat.completions.create({ messages, audio: { voice: 'a', format: 'wav' } });
// @ts-expect-error: a whole answer is no stream
for await (const chunk of await llm.chat.completions.create(chat)) chunk;
`;

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
