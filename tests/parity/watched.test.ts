/// <reference lib="dom" />
// What a server's log tells of the texts that a model is given: the page's host and a real engine, over HTTP.
import { readFileSync } from 'node:fs';

import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { openOptions, promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { LoadRequest } from '../../web/src/contract.js';
import { Model } from '../../web/src/worker/model.js';
import { CALL } from '../web/call.js';
import type { Starters } from '../../web/src/worker/model.js';
import { checkOptions } from '../../web/src/page/options.js';
import type { GenerationResult } from '../../web/src/types.js';
import { installFakeOpfs } from '../web/fake-opfs.js';
import { FakeServer } from '../web/fake-server.js';
import { convert, moduleCreator, starters } from './module.js';

const MiB = 1024 * 1024;
const PASSWORD = 'my password is fox';

let file: Uint8Array<ArrayBuffer>;
let start: Starters;

beforeAll(async () => {
  file = Uint8Array.from(readFileSync(convert('models/stories', 'watched.qsf')));
  start = starters(await moduleCreator());
});

let server: FakeServer;
let warnings: string[];

beforeEach(() => {
  server = new FakeServer(file, { chunk: MiB });
  warnings = [];
  vi.stubGlobal('fetch', server.fetch);
});

afterEach(() => {
  vi.unstubAllGlobals();
});

async function load(request: Partial<LoadRequest>): Promise<Model> {
  const model = await Model.create(
    {
      ...{ source: 'https://models.test/stories.qsf', memory: 4 * MiB, open: checkOptions(openOptions, {}), kv: 'f16' },
      ...{ cache: false, cacheLimit: undefined, background: false, variant: 'simd', threads: 1, network: {} },
      ...request,
    },
    { progress: () => undefined, warning: (warning) => warnings.push(warning) },
    start,
  );
  await model.load();
  return model;
}

async function answer(model: Model, tokens: Uint32Array): Promise<GenerationResult> {
  await model.start(CALL, {
    ...checkOptions(samplerOptions, { temperature: 0 }),
    ...checkOptions(promptOptions, { maxTokens: 5, ignoreEos: true, logitsHash: true }),
    ...{ prompt: tokens, stop: [], anew: true },
  });
  for (;;) {
    const { result } = await model.next(CALL.id);
    if (result) return result;
  }
}

/** The tokens of a text, of one that has as many, and of another. */
function texts(model: Model): { password: Uint32Array; other: Uint32Array; third: Uint32Array } {
  const password = model.engine.tokenize(PASSWORD, false);
  const other = password.map((_, i) => 2047 - 290 * i);
  return { password, other, third: password.map((id) => (id + 1000) % 2048) };
}

/** Segments of the embedding, which are the file's first, by their place in the table. */
function embedding(model: Model): number[] {
  const { vocabSize, dim } = model.stats().model;
  let rest = vocabSize * dim;
  return model.engine.session.segments().flatMap(({ rawSize }, i) => ((rest -= rawSize) > -rawSize ? [i] : []));
}

/** The segments that were asked for since request number `from`, in order. Neighbours that are wanted at once are one range. */
async function segmentsRead(model: Model, from: number): Promise<number[]> {
  while (server.active > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const segments = [...model.engine.session.segments().entries()];
  return server.spans
    .slice(from)
    .flatMap(([begin, end]) => segments.filter(([, { offset, size }]) => begin <= offset && offset + size <= end))
    .map(([i]) => i);
}

/** Reads ahead after the last token arrive as far as there is time for them. All others must be the same. */
function expectSame([one, two]: [number[], number[]], model: Model): void {
  const n = Math.min(one.length, two.length);
  expect(one.slice(0, n)).toEqual(two.slice(0, n));
  expect(Math.max(one.length, two.length) - n).toBeLessThanOrEqual(model.stats().plan.ringSlots);
}

/** What two texts of one length are answered by, and what the log tells of each. */
async function watch(model: Model) {
  const { password, other, third } = texts(model);
  await answer(model, third);
  const told = [];
  const results = [];
  for (const text of [password, other]) {
    await segmentsRead(model, 0);
    const from = server.spans.length;
    results.push(await answer(model, text));
    told.push(await segmentsRead(model, from));
  }
  expect(results[0]!.logitsHash).not.toBe(results[1]!.logitsHash);
  // The bits are those of a file, whose rows are looked up.
  const alone = await load({ source: new Blob([file]) });
  expect((await answer(alone, password)).logitsHash).toBe(results[0]!.logitsHash);
  await alone.close();
  return told as [number[], number[]];
}

describe("a server's log", () => {
  it.each([4 * MiB, 6 * MiB, 16 * MiB])('tells two texts of one length not apart, in %i bytes', async (memory) => {
    const model = await load({ memory });
    const told = await watch(model);
    expectSame(told, model);
    expect(told[0].length > 0).toBe(memory < 16 * MiB);
    await model.close();
  });

  it('nor where the browser refuses to keep the model', async () => {
    installFakeOpfs(Date.now).disk.quota = 2 * MiB;
    const model = await load({ cache: true });
    expect(warnings).toEqual([expect.stringContaining('refused to keep')]);
    const told = await watch(model);
    expectSame(told, model);
    expect(told[0]).not.toEqual([]);
    await model.close();
  });

  it('ends where the model is kept', async () => {
    installFakeOpfs(Date.now);
    const model = await load({ cache: true });
    const before = server.asked.length;
    await watch(model);
    expect(server.asked).toHaveLength(before);
    await model.close();
  });

  it('tells nothing of a text that is computed while the model arrives', async () => {
    installFakeOpfs(Date.now);
    server = new FakeServer(file, { chunk: 10_000 });
    vi.stubGlobal('fetch', server.fetch);
    const model = await load({ cache: true, background: true });
    await answer(model, texts(model).password);
    const table = embedding(model).map((i) => model.engine.session.segments()[i]!);
    expect(table.length).toBeGreaterThan(4);
    const asked = server.spans.flatMap(([begin, end]) =>
      table.filter(({ offset, size }) => begin <= offset && offset + size <= end).map(({ offset }) => offset),
    );
    expect(asked).toEqual([...asked].sort((a, b) => a - b));
    await model.close();
  });
});
