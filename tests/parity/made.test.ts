/// <reference lib="dom" />
// GGUF files in a page: the bytes of the files that are made of them, and their tokens, are those of qsf-convert's files.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { openOptions, promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { LoadRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { cache } from '../../web/src/page/cache.js';
import type { Progress } from '../../web/src/progress-types.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import { BytesSource } from '../../web/src/sources/local.js';
import { MadeSource } from '../../web/src/sources/made-source.js';
import type { GenerationResult } from '../../web/src/types.js';
import type { Starters } from '../../web/src/worker/model.js';
import { Model } from '../../web/src/worker/model.js';
import { CALL } from '../web/call.js';
import { installFakeOpfs } from '../web/fake-opfs.js';
import { FakeServer } from '../web/fake-server.js';
import { divided } from './gguf-parts.js';
import { folder, makerCreator, moduleCreator, program, starters } from './module.js';

const MiB = 1024 * 1024;
const root = join(import.meta.dirname, '..', '..');
const data = join(root, 'tests', 'data', 'gguf');
/** Types of which the built-in model is a GGUF file too: one for each kind of rows. */
const TYPES = ['q4_0', 'q8_0', 'q4_k', 'q6_k', 'f16', 'f32', 'iq2_xs', 'q1_0'];

const converted = (from: string, to: string, ...options: string[]) => {
  const out = join(folder, to);
  execFileSync(program('qsf-convert'), [from, out, ...options], { stdio: 'ignore' });
  return out;
};

let start: Starters;
let makers = 0;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  const engine = await moduleCreator();
  const maker = await makerCreator();
  start = starters(engine, () => {
    makers++;
    return maker.create({ wasmBinary: maker.wasmBinary });
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

const bytesAt = (path: string) => Uint8Array.from(readFileSync(path));

/**
 * Expects the bytes of the file that is made of a GGUF file, with the checksums of all segments, to equal a .qsf file. Of a
 * directory only the weights are compared: in a page it has no name, which the file of qsf-convert has.
 */
async function expectSame(model: string, qsf: string, quantType?: string): Promise<void> {
  const isFolder = statSync(model).isDirectory();
  const making = {
    first: isFolder ? undefined : { name: basename(model), source: new BytesSource(bytesAt(model)) },
    open: async (name: string) =>
      isFolder && existsSync(join(model, name)) ? new BytesSource(bytesAt(join(model, name))) : undefined,
    start: () => start.maker(undefined),
    warn: () => undefined,
    quantType,
  };
  const source = await MadeSource.open(making);
  const out = new Uint8Array(source.size);
  await source.read({ offset: 0, into: out, crc: undefined });
  const checksums = source.segments.map(({ offset, size }) => crc32(out.subarray(offset, offset + size)));
  out.set(await source.tables(checksums));
  const from = isFolder ? source.segments[0]!.offset : 0;
  expect(Buffer.compare(out.subarray(from), bytesAt(qsf).subarray(from))).toBe(0);
}

const defaults: Omit<LoadRequest, 'source'> = {
  ...{ memory: 16 * MiB, open: checkOptions(openOptions, {}), kv: 'f16', network: {} },
  ...{ cache: false, cacheLimit: undefined, background: false, variant: 'simd', threads: 1 },
};

async function load(source: LoadRequest['source'], request: Partial<LoadRequest> = {}): Promise<Model> {
  const model = await Model.create(
    { source, ...defaults, ...request },
    { progress: () => undefined, warning: () => undefined },
    start,
  );
  await model.load();
  return model;
}

async function answer(model: Model): Promise<GenerationResult> {
  await model.start(CALL, {
    ...checkOptions(samplerOptions, { temperature: 0 }),
    ...checkOptions(promptOptions, { maxTokens: 8, ignoreEos: true, logitsHash: true }),
    ...{ prompt: Uint32Array.of(5, 9, 3, 7), stop: [], continue: false },
  });
  for (;;) {
    const { result } = await model.next(CALL.id);
    if (result) return result;
  }
}

describe('the file that is made of', () => {
  it.each(readdirSync(data).filter((name) => name.endsWith('.gguf')))('%s equals that of qsf-convert', async (name) => {
    await expectSame(join(data, name), converted(join(data, name), `made-${name}.qsf`));
  });

  it.each(TYPES)('a GGUF of %s equals that of qsf-convert', async (type) => {
    const gguf = converted(join(root, 'models', 'stories'), `made-${type}.gguf`, '--quant-type', type);
    await expectSame(gguf, converted(gguf, `made-${type}.qsf`));
  });
});

describe('a type of all matrices', () => {
  const directory = join(root, 'tests', 'data', 'llama');
  const gguf = join(data, 'llama.gguf');
  /** One for each rule of rounding. */
  const rounded = [
    ...['8bit', '4bit', '2bit-symmetric', 'ternary', 'q4_0', 'q4_1', 'q8_0', 'q4_k', 'q6_k', 'iq4_nl'],
    ...['tq1_0', 'mxfp4', 'q1_0', 'qk256', 'f16', 'bf16', 'f32'],
  ];

  it.each(rounded)('%s rounds a directory and a GGUF file as qsf-convert does', async (type) => {
    for (const [name, from] of Object.entries({ directory, gguf }))
      await expectSame(from, converted(from, `rounded-${name}-${type}.qsf`, '--quant-type', type), type);
  });

  it('rounds heads whose rows are permuted, and experts', async () => {
    for (const name of ['qwen3-moe.gguf', 'gpt-oss.gguf']) {
      const from = join(data, name);
      await expectSame(from, converted(from, `rounded-${name}.qsf`, '--quant-type', 'q4_0'), 'q4_0');
    }
  });

  it.each(['iq2_xs', 'nvfp4', 'trellis3', 'q4_0_4_4'])(
    'that is %s is refused with those that are there',
    async (type) => {
      const loading = load(new Blob([bytesAt(gguf)]), { quantType: type });
      await expect(loading).rejects.toMatchObject({
        ...{ name: 'QSFError', code: 'bad_argument' },
        message: expect.stringMatching(
          new RegExp(`^quantType is "${type}"; it must be one of f32, f16, .*, q4_0, .*, q8_0, .*, qk256$`),
        ) as string,
      });
    },
  );

  it('is refused for a .qsf file', async () => {
    const qsf = new Blob([bytesAt(converted(gguf, 'typed.qsf'))]);
    await expect(load(qsf, { quantType: 'q4_0' })).rejects.toMatchObject({
      ...{ code: 'bad_argument', message: expect.stringContaining('a .qsf file keeps its types') as string },
    });
  });

  it('warns of a second rounding, and plans with the rounded weights', async () => {
    const small = converted(gguf, 'small.gguf', '--quant-type', 'q4_0');
    const warnings: string[] = [];
    const plans: (number | undefined)[] = [];
    for (const quantType of [undefined, 'f32']) {
      const request = { ...defaults, source: new Blob([bytesAt(small)]), quantType };
      const listeners = {
        progress: ({ plan }: Progress) => plans.push(plan?.weightBytes),
        warning: (sentence: string) => warnings.push(sentence),
      };
      const model = await Model.create(request, listeners, start);
      await model.load();
      expect(plans.at(-1)).toBe(model.stats().model.weightBytes);
      await model.close();
    }
    expect(Math.max(...plans.map((bytes) => bytes ?? 0))).toBeGreaterThan(
      4 * plans.find((bytes) => bytes !== undefined)!,
    );
    const again = converted(small, 'again.gguf', '--quant-type', 'q8_0');
    const model = await Model.create(
      { ...defaults, source: new Blob([bytesAt(again)]), quantType: 'q4_0' },
      { progress: () => undefined, warning: (sentence) => warnings.push(sentence) },
      start,
    );
    await model.close();
    expect(warnings.join()).toMatch(/rounded a second time, such as from q8_0 to q4_0/);
  });

  it('is kept in a file of its own', async () => {
    installFakeOpfs(Date.now);
    const server = new FakeServer(bytesAt(gguf), { chunk: MiB });
    vi.stubGlobal('fetch', server.fetch);
    const source = 'https://models.test/typed.gguf';
    const hashes = new Map<string | undefined, string>();
    for (const quantType of [undefined, 'q4_0', 'q8_0']) {
      const model = await load(source, { cache: true, quantType });
      hashes.set(quantType, (await answer(model)).logitsHash!);
      await model.close();
    }
    expect(new Set(hashes.values()).size).toBe(3);
    const kept = (await cache.list()).map(({ url, quantType, complete }) => ({ url, quantType, complete }));
    expect(kept).toHaveLength(3);
    for (const quantType of hashes.keys()) expect(kept).toContainEqual({ url: source, quantType, complete: true });
    makers = 0;
    for (const [quantType, hash] of hashes) {
      const model = await load(source, { cache: true, quantType });
      expect((await answer(model)).logitsHash).toBe(hash);
      expect(model.stats().io.network).toBe(0);
      await model.close();
    }
    expect(makers).toBe(0);
  });

  it('that makes a model larger than the cache may be is not kept', async () => {
    installFakeOpfs(Date.now);
    const bytes = bytesAt(converted(gguf, 'limited.gguf', '--quant-type', 'q4_0'));
    vi.stubGlobal('fetch', new FakeServer(bytes, { chunk: MiB }).fetch);
    const request = { cache: true, cacheLimit: 2 * bytes.length };
    for (const [quantType, state] of [
      ['f32', 'off'],
      ['q8_0', 'complete'],
    ] as const) {
      const model = await load('https://models.test/limited.gguf', { ...request, quantType });
      await answer(model);
      expect(model.stats().io.cacheState).toBe(state);
      await model.close();
    }
    expect((await cache.list()).map(({ quantType }) => quantType)).toEqual(['q8_0']);
  });
});

describe('several files', () => {
  const llama = join(root, 'tests', 'data', 'llama');
  const cases: { name: string; files: () => File[]; from: string; address: string }[] = [
    {
      ...{ name: 'a divided GGUF file', files: () => divided(bytesAt(join(data, 'llama.gguf')), 'llama') },
      ...{ from: join(data, 'llama.gguf'), address: 'llama-00002-of-00002.gguf' },
    },
    {
      name: 'a directory',
      files: () => readdirSync(llama).map((file) => new File([bytesAt(join(llama, file))], file)),
      ...{ from: llama, address: '' },
    },
  ];

  it.each(cases)('of $name are found in a list and next to an address', async ({ files, from, address }) => {
    const whole = await load(new Blob([bytesAt(converted(from, 'several.qsf'))]));
    const { tokens, logitsHash } = await answer(whole);
    await whole.close();
    const servers = new Map<string, FakeServer>();
    for (const file of files()) servers.set(file.name, new FakeServer(new Uint8Array(await file.arrayBuffer())));
    vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
      const server = servers.get(url.split('/').at(-1)!);
      return server ? server.fetch(url, init) : new Response(null, { status: 404 });
    });
    const named = files().map((file) => ({ name: file.name, file }));
    for (const source of [named, `https://models.test/${address}`]) {
      const model = await load(source);
      expect(await answer(model)).toMatchObject({ tokens, logitsHash });
      await model.close();
    }
  });
});

describe('a model that cannot be made', () => {
  const llama = join(root, 'tests', 'data', 'llama');
  const named = (name: string, bytes: Uint8Array<ArrayBuffer>) => ({ name, file: new Blob([bytes]) });
  const renamed = (path: string) => {
    const bytes = Buffer.from(readFileSync(path));
    for (let at = bytes.indexOf('llama'); at >= 0; at = bytes.indexOf('llama', at)) bytes.write('lllma', at);
    return Uint8Array.from(bytes);
  };
  const gguf = join(data, 'llama.gguf');
  const lastPart = () => divided(bytesAt(gguf), 'a').map((file) => ({ name: file.name, file }))[1]!;

  it.each<[string, LoadRequest['source'], Partial<LoadRequest>, string, RegExp]>([
    ['another architecture', new Blob([renamed(gguf)]), {}, 'unsupported', /lllma/],
    ['half of a file', new Blob([bytesAt(gguf).subarray(0, 40_000)]), {}, 'truncated', /./],
    ['one part of two', [lastPart()], {}, 'io_error', /a-00001-of-00002/],
    [
      'pickles',
      [
        ...['config.json', 'tokenizer.json'].map((name) => named(name, bytesAt(join(llama, name)))),
        named('pytorch_model.bin', new Uint8Array(1000)),
      ],
      ...([{}, 'unsupported', /pytorch_model.bin has pickles/] as const),
    ],
    [
      'a list without a model',
      [named('a.txt', Uint8Array.of(1)), named('b', Uint8Array.of(1))],
      {},
      'bad_input',
      /config.json/,
    ],
    ['a digest', new Blob([bytesAt(gguf)]), { sha256: '0'.repeat(64) }, 'bad_argument', /sha256/],
    [
      'a digest of a list',
      [named('config.json', Uint8Array.of(1)), named('b', Uint8Array.of(1))],
      { sha256: '0'.repeat(64) },
      'bad_argument',
      /sha256/,
    ],
  ])('because of %s is refused', async (_, source, request, code, message) => {
    await expect(load(source, request)).rejects.toMatchObject({
      ...{ name: 'QSFError', code, message: expect.stringMatching(message) as string },
    });
  });
});

describe.each(['llama.gguf', 'qwen3-moe.gguf', 'gpt-oss.gguf', 'lfm2.gguf'])('%s in the worker', (name) => {
  const path = join(data, name);
  let expected: GenerationResult;
  const hashes = ({ tokens, logitsHash }: GenerationResult) => ({ tokens, logitsHash });

  beforeAll(async () => {
    const model = await load(new Blob([bytesAt(converted(path, `tokens-${name}.qsf`))]));
    expected = await answer(model);
    await model.close();
  });

  it('generates the same from a Blob, resident and streamed', async () => {
    for (const streamAll of [false, true]) {
      const model = await load(new Blob([bytesAt(path)]), { open: checkOptions(openOptions, { streamAll }) });
      expect(hashes(await answer(model))).toEqual(hashes(expected));
      expect(model.stats().model).toMatchObject({ madeFrom: 'GGUF', hash: '' });
      expect(model.stats().memory.maker).toBeGreaterThan(0);
      await model.close();
    }
  });

  it('is kept as the .qsf file, and then needs no maker', async () => {
    installFakeOpfs(Date.now);
    const server = new FakeServer(bytesAt(path), { chunk: MiB });
    vi.stubGlobal('fetch', server.fetch);
    const source = `https://models.test/${name}`;
    const first = await load(source, { cache: true });
    expect(hashes(await answer(first))).toEqual(hashes(expected));
    expect(first.stats().io.cacheState).toBe('complete');
    await first.close();
    makers = 0;
    const second = await load(source, { cache: true });
    expect(hashes(await answer(second))).toEqual(hashes(expected));
    expect(second.stats().io.network).toBe(0);
    expect(second.stats().model.madeFrom).toBeUndefined();
    expect(second.stats().model.hash).not.toBe('');
    expect(makers).toBe(0);
    await second.close();
  });
});
