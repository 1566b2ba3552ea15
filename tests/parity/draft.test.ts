/// <reference lib="dom" />
// Draft models in the worker: the text is that of the model alone, and both models are inside one memory.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { openOptions } from '../../web/src/boundary.gen.js';
import type { OpenOptions } from '../../web/src/boundary.gen.js';
import type { LoadRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { chatRequest, generateRequest } from '../../web/src/page/requests.js';
import type { Progress } from '../../web/src/progress-types.js';
import type { GenerateOptions, GenerationResult } from '../../web/src/types.js';
import { Model } from '../../web/src/worker/model.js';
import { installFakeOpfs } from '../web/fake-opfs.js';
import { FakeServer } from '../web/fake-server.js';
import {
  Fed,
  convert,
  folder,
  makerCreator,
  moduleCreator,
  program,
  startModule,
  starters,
  stories,
} from './module.js';

const MiB = 1024 * 1024;
const PROMPTS = ['Once upon a time', 'A cat and a dog went to', 'The sun'];
const GREEDY = { temperature: 0, maxTokens: 60, ignoreEos: true, logitsHash: true, seed: 1 };
const DRAWN = { ...GREEDY, temperature: 0.9, seed: 5 };

let start: ReturnType<typeof starters>;
let file: Blob;
/** The same model with coarser weights, as .qsf and as GGUF. */
let small: Blob;
let gguf: File;
/** The model's float weights as GGUF. */
let wide: File;
let other: Blob;

/** Converts a model of the sources to a type. */
function converted(from: string, name: string, type: string): Uint8Array<ArrayBuffer> {
  mkdirSync(folder, { recursive: true });
  const out = join(folder, name);
  execFileSync(program('qsf-convert'), [join(import.meta.dirname, '..', '..', from), out, '--quant-type', type], {
    stdio: 'ignore',
  });
  return new Uint8Array(readFileSync(out));
}

beforeAll(async () => {
  const maker = await makerCreator();
  start = starters(await moduleCreator(), () => maker.create({ wasmBinary: maker.wasmBinary }));
  file = new Blob([new Uint8Array(stories())]);
  small = new Blob([converted('models/stories', 'draft.qsf', 'q2_k')]);
  gguf = new File([converted('models/stories', 'draft.gguf', 'q4_0')], 'draft.gguf');
  wide = new File([converted('models/stories', 'wide.gguf', 'f16')], 'wide.gguf');
  other = new Blob([new Uint8Array(readFileSync(convert('tests/data/llama', 'other.qsf')))]);
});

let progress: Progress[];
let warnings: string[];
let opened: Model[] = [];
afterEach(async () => {
  for (const model of opened) await model.close();
  opened = [];
  vi.unstubAllGlobals();
});

async function open(given: Partial<OpenOptions>, request: Partial<LoadRequest> = {}): Promise<Model> {
  progress = [];
  warnings = [];
  const model = await Model.create(
    {
      ...{ source: file, memory: 16 * MiB, open: checkOptions(openOptions, given), kv: undefined, network: {} },
      ...{ cache: false, cacheLimit: undefined, background: false, variant: 'simd', threads: 1 },
      ...request,
    },
    { progress: (p) => progress.push(p), warning: (warning) => warnings.push(warning) },
    start,
  );
  opened.push(model);
  await model.load();
  return model;
}

let ids = 0;
interface Run {
  text: string;
  result: GenerationResult;
}
async function take(model: Model, id: string): Promise<Run> {
  for (let text = ''; ;) {
    const { pieces, result } = await model.next(id);
    text += pieces.join('');
    if (result) return { text, result };
  }
}
async function run(model: Model, request = generateRequest(PROMPTS[0]!, GREEDY)): Promise<Run> {
  const id = String(++ids);
  await model.start({ id, caller: 'test' }, request);
  return take(model, id);
}
const story = (options: GenerateOptions, i = 0) => generateRequest(PROMPTS[i]!, options);
const bitsOf = ({ text, result: { tokens, logitsHash, end } }: Run) => ({ text, tokens, logitsHash, end });

describe('the first layers', () => {
  it('change no bit of a text', async () => {
    const alone = await open({});
    const expected = [await run(alone, story(GREEDY)), await run(alone, story(DRAWN))];
    for (const how of [{ guessLayers: 4 }, { guessLayers: 3, guesses: 15, streamAll: true }]) {
      const model = await open({ guessByLayers: true, ...how });
      const runs = [await run(model, story(GREEDY)), await run(model, story(DRAWN))];
      expect(runs.map(bitsOf)).toEqual(expected.map(bitsOf));
      for (const { result } of runs) expect(result.guesses!.right).toBeGreaterThan(0);
    }
    const refused = { code: 'bad_argument', message: expect.stringMatching(/99 layers are to guess/) as string };
    await expect(open({ guessByLayers: true, guessLayers: 99 })).rejects.toMatchObject(refused);
  });
});

/** The model as a draft whose bytes are given by `hold` while reading is held. */
async function holding(hold: () => Promise<ArrayBuffer>) {
  const reading = { isHeld: false, waits: 0 };
  const slice = file.slice.bind(file);
  const held = () => {
    reading.waits++;
    return hold();
  };
  const draft = Object.assign(new Blob([await file.arrayBuffer()]), {
    slice: (...range: [number, number]) => (reading.isHeld ? { arrayBuffer: held } : slice(...range)),
  });
  return { draft, reading };
}

describe('a draft', () => {
  it('changes no bit of a text, whether its weights or those of the model are streamed', async () => {
    const alone = await open({});
    const expected = [await run(alone, story(GREEDY)), await run(alone, story(DRAWN))];
    expect(expected[0]!.result.guesses).toBeUndefined();
    for (const [draft, memory, how] of [
      [small, 16 * MiB, {}],
      [gguf, 16 * MiB, { guesses: 15 }],
      [small, 8 * MiB, { streamAll: true }],
      [small, 5.5 * MiB, { maxSeqLen: 128, chunk: 3 }],
    ] as const) {
      const model = await open(how, { draft, memory });
      const runs = [await run(model, story(GREEDY)), await run(model, story(DRAWN))];
      expect(runs.map(bitsOf)).toEqual(expected.map(bitsOf));
      for (const { result } of runs) {
        expect(result.guesses!.right).toBeGreaterThan(0);
        expect(result.guesses!.right).toBeLessThanOrEqual(result.guesses!.made);
      }
    }
  });

  it('is a part of the budget, of the map and of the statistics', async () => {
    const model = await open({}, { draft: small });
    const { memory, plan, draft } = model.stats();
    expect(memory).toMatchObject({ budget: 16 * MiB, wasm: 16 * MiB, maker: 0 });
    expect(memory.map.find(({ region }) => region === 'draft')).toMatchObject({ bytes: draft!.budget });
    expect(plan.draftBytes).toBe(draft!.budget);
    expect(memory.map.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(15 * MiB);
    expect(draft!.budget).toBeLessThanOrEqual(8 * MiB);
    expect(draft!.plan.ringSlots).toBe(0);
    expect(draft!.plan.pinnedBytes).toBeGreaterThanOrEqual(draft!.model.weightBytes);
    expect(draft!.model.bytes).toBe(small.size);
    expect(draft!.io.blob).toBeGreaterThan(0);
    expect(warnings).toEqual([]);
    expect(progress.map(({ of, phase }) => [of, phase])).toEqual([
      ...['open', 'plan', 'download', 'ready'].map((phase) => ['draft', phase]),
      ...['open', 'plan', 'download', 'ready'].map((phase) => [undefined, phase]),
    ]);
    // The native program divides the budget in the same way.
    const receipt = join(folder, 'draft.json');
    const of = ['--speculate', join(folder, 'draft.qsf'), '--ram-budget', '16', '--receipt', receipt, '-n', '1'];
    const model_ = convert('models/stories', 'stories-8bit.qsf');
    execFileSync(program('qsf-run'), [model_, '--prompt', 'a', ...of], { stdio: 'ignore' });
    const native = JSON.parse(readFileSync(receipt, 'utf8')) as { guesses: { draft: { budget: number } } };
    expect(draft!.budget).toBe(native.guesses.draft.budget);
  });

  it('has a type of its own, whatever the type of the model is', async () => {
    const { draft } = (
      await open({}, { draft: new Blob([converted('models/stories', 'rounded.qsf', 'q4_0')]) })
    ).stats();
    const typed = { source: wide, quantType: 'q8_0' };
    const alone = await run(await open({}, typed));
    const model = await open({}, { ...typed, draft: wide, draftType: 'q4_0' });
    const made = model.stats().draft!;
    expect([made.budget, made.model.weightBytes]).toEqual([draft!.budget, draft!.model.weightBytes]);
    expect(model.stats().model.weightBytes).toBeGreaterThan(made.model.weightBytes);
    const guessed = await run(model);
    expect(guessed.result.guesses!.right).toBeGreaterThan(0);
    expect(bitsOf(guessed)).toEqual(bitsOf(alone));
    await expect(open({}, { draft: small, draftType: 'q4_0' })).rejects.toMatchObject({
      ...{ code: 'bad_argument', message: expect.stringMatching(/^the draft model: quantType is for GGUF/) as string },
    });
  });

  it('saves passes over streamed weights, and warns if it is no smaller', async () => {
    const how = { streamAll: true, maxSeqLen: 128 };
    const alone = await open(how);
    const none = alone.stats().io.engine;
    const plain = await run(alone);
    const read = alone.stats().io.engine - none;
    const model = await open(how, { draft: file });
    expect(warnings).toEqual([
      expect.stringMatching(/ bytes of weights are read from a File or Blob for every token/),
      expect.stringMatching(/^the draft model is not smaller than the model: /),
    ]);
    const before = model.stats().io.engine;
    const guessed = await run(model);
    expect(bitsOf(guessed)).toEqual(bitsOf(plain));
    const { made, right } = guessed.result.guesses!;
    expect(made).toBe(right);
    expect(right).toBeGreaterThan(45);
    expect(model.stats().io.engine - before).toBeLessThan(read / 3);
  });

  it('follows several sequences, and answers', async () => {
    const template = `{% for m in messages %}{{ m['content'] }}{% endfor %}`;
    const requests = [
      story(GREEDY),
      story(DRAWN, 1),
      chatRequest(PROMPTS[2]!, { ...DRAWN, template }),
      chatRequest(
        [
          { role: 'user', content: PROMPTS[2]! },
          { role: 'user', content: ' was' },
        ],
        { ...GREEDY, template },
      ),
    ];
    const options = { maxSeqLen: 128, textBytes: 2 * MiB };
    const alone = await open(options);
    const expected: Run[] = [];
    for (const request of requests) expected.push(await run(alone, request));
    const model = await open({ ...options, sequences: 2 }, { draft: small });
    const runs = await Promise.all(requests.map((request) => run(model, request)));
    expect(runs.map(bitsOf)).toEqual(expected.map(bitsOf));
    for (const { result } of runs) expect(result.guesses!.right).toBeGreaterThan(0);
    // A text that goes on in a sequence whose draft has other tokens.
    const rest = generateRequest(' and', { ...GREEDY, continue: true, maxTokens: 12 });
    await run(alone, story(GREEDY));
    await run(model, story(GREEDY));
    expect(bitsOf(await run(model, rest))).toEqual(bitsOf(await run(alone, rest)));
  });

  it('leaves the model as it is when a generation is stopped while it guesses', async () => {
    const alone = await open({ maxSeqLen: 128 });
    const expected = await run(alone, story(GREEDY, 1));
    const model = await open({ maxSeqLen: 128 }, { draft: small });
    for (const wait of [0, 1, 5, 20]) {
      const id = String(++ids);
      await model.start({ id, caller: 'test' }, story(DRAWN));
      await model.next(id);
      await new Promise((resolve) => setTimeout(resolve, wait));
      expect(model.stop(id)).toMatchObject({ end: 'cancelled' });
      expect(bitsOf(await run(model, story(GREEDY, 1)))).toEqual(bitsOf(expected));
    }
    await model.start({ id: 'last', caller: 'test' }, story(DRAWN));
    await model.close();
    expect(model.stop('last')).toMatchObject({ end: 'cancelled' });
  });

  it('that waits for bytes ends with the generation that it guesses for', async () => {
    const { draft, reading } = await holding(() => new Promise<never>(() => undefined));
    const model = await open({ maxSeqLen: 128 }, { draft, lazy: true });
    reading.isHeld = true;
    await model.start({ id: 'held', caller: 'test' }, story(GREEDY));
    await vi.waitFor(() => expect(reading.waits).toBeGreaterThan(0));
    expect(model.stop('held')).toMatchObject({ end: 'cancelled' });
    const { result } = await run(model, story({ ...GREEDY, maxTokens: 1 }, 1));
    expect(result.tokens).toHaveLength(1);
  });

  it('ends a generation when it cannot be read, and guesses again later', async () => {
    const expected = await run(await open({ maxSeqLen: 128 }));
    const { draft, reading } = await holding(() => {
      throw new DOMException('The disk is gone', 'NotReadableError');
    });
    const model = await open({ maxSeqLen: 128 }, { draft, lazy: true });
    reading.isHeld = true;
    const message = expect.stringMatching(/^the draft model: /) as string;
    await expect(run(model)).rejects.toMatchObject({ code: 'io_error', message });
    reading.isHeld = false;
    const later = await run(model);
    expect(bitsOf(later)).toEqual(bitsOf(expected));
    expect(later.result.guesses!.right).toBeGreaterThan(0);
  });

  it.each([true, false])('comes from a server as the model does, with a cache: %s', async (cache) => {
    const expected = await run(await open({ maxSeqLen: 128 }));
    installFakeOpfs(Date.now);
    const servers = [new FakeServer(new Uint8Array(stories()), { chunk: MiB })];
    servers.push(new FakeServer(new Uint8Array(await small.arrayBuffer()), { chunk: MiB }));
    const [model, draft] = ['https://models.test/stories.qsf', 'https://drafts.test/small.qsf'];
    vi.stubGlobal('fetch', (url: string, init?: RequestInit) => servers[url === draft ? 1 : 0]!.fetch(url, init));
    for (const memory of [16 * MiB, 5.5 * MiB]) {
      const opened = await open({ maxSeqLen: 128 }, { source: model, draft, memory, cache });
      const made = await run(opened);
      expect(bitsOf(made)).toEqual(bitsOf(expected));
      expect(made.result.guesses!.right).toBeGreaterThan(0);
      expect(opened.stats().draft!.io.cacheState).toBe(cache ? 'complete' : 'off');
      expect(warnings.filter((warning) => warning.startsWith('The draft model: '))).toEqual([]);
      await opened.close();
    }
  });

  it('shows the headers for the model to no other server', async () => {
    const seen: [string, string | null][] = [];
    const server = new FakeServer(new Uint8Array(stories()), { chunk: MiB });
    vi.stubGlobal('fetch', (url: string, init?: RequestInit) => {
      seen.push([new URL(url).host, new Headers(init?.headers).get('Authorization')]);
      return server.fetch(url, init);
    });
    const network = { headers: { authorization: 'secret' } };
    const source = 'https://models.test/stories.qsf';
    for (const draft of ['https://models.test/draft.qsf', 'https://drafts.test/draft.qsf'])
      await (await open({ maxSeqLen: 128 }, { source, draft, network })).close();
    const headers = (host: string) => new Set(seen.filter(([at]) => at === host).map(([, header]) => header));
    expect(headers('models.test')).toEqual(new Set(['secret']));
    expect(headers('drafts.test')).toEqual(new Set([null]));
  });

  it('can be planned again in all the memory', async () => {
    const made = await startModule(16 * MiB);
    const fed = new Fed(made, new Uint8Array(await small.arrayBuffer()));
    const model = new made.module.Session(1, false);
    model.useDraft(fed.session);
    const options = checkOptions(openOptions, { sequences: 64, maxSeqLen: 32 });
    for (let round = 0; round < 2; round++) {
      const openings: unknown[] = [];
      do {
        openings.push(fed.session.openDraft(16 * MiB, small.size, false, openings.length > 0, options));
        if (openings.at(-1) === false) while (fed.step() !== 'ready');
      } while (openings.at(-1) === false && openings.length < 9);
      // The first opening states the draft's own context, the second one the bytes that its weights need.
      expect(openings).toEqual([false, false, true]);
      while (fed.step() !== 'ready');
    }
  });

  it('is refused with a sentence', async () => {
    const refused = (draft: LoadRequest['draft'], given: Partial<OpenOptions>, more: Partial<LoadRequest> = {}) =>
      expect(open(given, { draft, ...more })).rejects;
    await refused(other, {}).toMatchObject({
      code: 'bad_argument',
      message: expect.stringMatching(/^the draft model has another vocabulary: its token /) as string,
    });
    await refused(small, { kvWindow: 64, kvChosen: 1 }).toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/^a draft model is of no use: /) as string,
    });
    await refused(new Blob(['nothing']), {}).toMatchObject({
      code: 'truncated',
      message: expect.stringMatching(/^the draft model: the file has 7 bytes/) as string,
    });
    await refused(file, {}, { memory: 3 * MiB }).toMatchObject({
      code: 'budget_too_small',
      message: expect.stringMatching(/^the draft model: /) as string,
    });
  });
});
