import { readFileSync } from 'node:fs';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { LoadRequest } from '../../web/src/contract.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import { chooseFile, chosenRequest } from '../../web/src/worker/repository.js';
import { installFakeOpfs } from './fake-opfs.js';

interface Case {
  name: string;
  files: Record<string, number>;
  budget: number;
  chosen?: string;
  fits?: boolean;
  of?: number;
}

const shared = new URL('../data/hub/choices.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(shared, 'utf8')) as { cases: Case[] };
const LIST = 'https://huggingface.co/api/models/owner/name/revision/main?blobs=true';
const FOLDER = 'https://huggingface.co/owner/name/resolve/main/';
const MiB = 1024 * 1024;

let asked: string[];
let warnings: string[];
const answer = (reply: () => Response | Promise<Response>) =>
  vi.stubGlobal('fetch', async (url: string) => {
    asked.push(url);
    return reply();
  });
const list = (files: Record<string, number>) => () =>
  Response.json({ sha: 'x', siblings: Object.entries(files).map(([rfilename, size]) => ({ rfilename, size })) });

const choose = (source: LoadRequest['source'], memory = 64 * MiB, quantType?: string) => {
  const network = { retries: 1, retryDelay: 1 };
  const request = { source, memory, cache: true, network, quantType } as unknown as LoadRequest;
  return chosenRequest(request, (warning) => warnings.push(warning));
};

beforeEach(() => {
  [asked, warnings] = [[], []];
  installFakeOpfs(() => 1);
});
afterEach(() => vi.unstubAllGlobals());

describe('the model of a repository', () => {
  it.each(cases)('is the one that qsf-run chooses: $name', ({ files, budget, chosen, fits, of }) => {
    const all = Object.entries(files).map(([name, size]) => ({ name, size }));
    expect(chooseFile(all, budget)).toEqual(chosen && expect.objectContaining({ name: chosen, fits, of }));
  });

  it.each(cases)('is the first of files: $name', async ({ files, budget, chosen, of = 0 }) => {
    const given = Object.entries(files).map(([name, size]) => ({ name, file: { size } as Blob }));
    const { source } = await choose(given, budget);
    expect(source).toHaveLength(given.length);
    expect(new Set(source as typeof given)).toEqual(new Set(given));
    expect((source as typeof given)[0]!.name).toBe(chosen ?? given[0]!.name);
    const isToldOf = chosen !== undefined && (of > 1 || 'config.json' in files);
    expect(warnings).toEqual(isToldOf ? [expect.stringContaining(`The files: ${chosen} of `)] : []);
  });

  it('is asked of the Hub and reported', async () => {
    answer(list({ 'q8/a b.gguf': 60 * MiB, 'a-Q4_0.gguf': 40 * MiB, 'config.json': 100 }));
    expect((await choose('hf:owner/name@main')).source).toBe(`${FOLDER}a-Q4_0.gguf`);
    expect(asked).toEqual([LIST]);
    expect(warnings).toEqual([
      'hf:owner/name: a-Q4_0.gguf of 40.0 MiB is read, the largest of 2 that fits in the budget.',
    ]);
    expect((await choose('hf:owner/name', 128 * MiB)).source).toBe(`${FOLDER}q8/a%20b.gguf`);
    await choose('hf:owner/name@v1/2');
    expect(asked.at(-1)).toBe('https://huggingface.co/api/models/owner/name/revision/v1%2F2?blobs=true');
    await choose('hf:owner/name', MiB);
    expect(warnings.at(-1)).toContain('the smallest of 2 that are there, none of which fits in the budget');
  });

  it('is the directory, if it has no file of its own', async () => {
    answer(list({ 'config.json': 1, 'model.safetensors': 5 }));
    expect((await choose('hf:owner/name')).source).toBe(FOLDER);
    expect(warnings).toEqual([]);
    answer(list({ 'README.md': 1 }));
    await expect(choose('hf:owner/name')).rejects.toMatchObject({ code: 'unsupported' });
  });

  it('is not asked for if a file is named, or another address', async () => {
    answer(() => Promise.reject(new Error('asked')));
    for (const source of [`${FOLDER}a.gguf`, 'https://example.org/a/'])
      expect((await choose(source)).source).toBe(source);
    expect(asked).toEqual([]);
  });

  it.each([
    [401, 'private'],
    [403, 'gated'],
    [404, 'not there'],
  ])('says what status %i means', async (status, words) => {
    answer(() => new Response('{}', { status }));
    await expect(choose('hf:owner/name')).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'http_status', status, message: expect.stringContaining(words) as string },
    });
    expect(asked).toHaveLength(1);
  });

  it.each(['', '[]', '{"siblings":[{"rfilename":"../a.gguf"}]}', '{"siblings":[null]}', '<html>'])(
    'refuses the list %s',
    async (text) => {
      answer(() => new Response(text));
      await expect(choose('hf:owner/name')).rejects.toMatchObject({ code: 'bad_input' });
    },
  );

  it('is asked for again after a status that may pass', async () => {
    let n = 0;
    answer(() => (n++ === 0 ? new Response('', { status: 503 }) : list({ 'a.qsf': 1 })()));
    expect((await choose('hf:owner/name')).source).toBe(`${FOLDER}a.qsf`);
    expect(warnings[0]).toContain('answered 503');
  });

  it('is one of the kept ones without a network, or none', async () => {
    answer(() => Promise.reject(new TypeError('Failed to fetch')));
    await expect(choose('hf:owner/name')).rejects.toMatchObject({ code: 'network_error' });
    expect(asked.length).toBeGreaterThan(1);
    for (const [name, size, whole, quantType] of [
      ['a%20b.gguf', 400, true, undefined],
      ['half.gguf', 500, false, undefined],
      ['rounded.gguf', 600, true, 'q4_0'],
    ] as const) {
      const url = FOLDER + name;
      const kept = (await openCache(url, undefined, undefined, quantType))!;
      kept.reset({ url, validator: '"1"', size, ...(quantType && { quantType }) });
      kept.write(0, new Uint8Array(size));
      kept.mark(0, size / 2);
      if (whole) kept.mark(0, size);
      if (whole) kept.markComplete();
      await kept.close();
    }
    asked = [];
    expect((await choose('hf:owner/name')).source).toBe(`${FOLDER}a%20b.gguf`);
    expect(asked.filter((url) => url === LIST)).toHaveLength(1);
    expect((await choose('hf:owner/name', 64 * MiB, 'q4_0')).source).toBe(`${FOLDER}rounded.gguf`);
    await expect(choose('hf:owner/name', 64 * MiB, 'q8_0')).rejects.toMatchObject({ code: 'network_error' });
  });
});
