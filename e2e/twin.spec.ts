// The browser is the native engine's twin: the same model, seed and budget give the same plan, tokens, text and logits,
// from HTTP, from the browser's own files with the server stopped, and from a File.
import { expect, test } from '@playwright/test';

import type { LoadOptions, Stats, Variant } from '../web/src/index.js';
import { launchChromium, launchFirefox, launchWebKit } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time there was a little fox who';
const generation = { maxTokens: 60, temperature: 0.8, topK: 50, topP: 0.95, repetitionPenalty: 1.1, seed: 20_260 };
const nativeOptions = [
  '--prompt',
  PROMPT,
  '--max-tokens',
  '60',
  '--temperature',
  '0.8',
  '--top-k',
  '50',
  '--top-p',
  '0.95',
];
nativeOptions.push('--repetition-penalty', '1.1', '--seed', '20260');

interface Case {
  title: string;
  model: 'stories-8bit.qsf' | 'stories-4bit.qsf' | 'stories-f16.qsf';
  quantType: string;
  memory: number;
  options: string[];
  load: Partial<LoadOptions>;
  /** Whether weights are streamed. */
  streamed: boolean;
}

const cases: Case[] = [
  {
    title: '8-bit, all of it in memory',
    model: 'stories-8bit.qsf',
    quantType: '8bit',
    memory: 16,
    options: [],
    load: {},
    streamed: false,
  },
  {
    title: '8-bit in less memory than its weights',
    model: 'stories-8bit.qsf',
    quantType: '8bit',
    memory: 4,
    options: [],
    load: {},
    streamed: true,
  },
  {
    title: 'f16 through the smallest ring, 8-bit keys and values',
    model: 'stories-f16.qsf',
    quantType: 'f16',
    memory: 6,
    options: ['--stream-all', '--kv', '8bit'],
    load: { streamAll: true, kv: '8bit' },
    streamed: true,
  },
  { title: '4-bit', model: 'stories-4bit.qsf', quantType: '4bit', memory: 8, options: [], load: {}, streamed: false },
];

let models: TestServer;
let pages: TestServer;
/** By title: from a file, and from a server that sees the reads, as in a browser that keeps no files. */
const receipts = new Map<string, { file: Receipt; server: Receipt }>();

test.beforeAll(async () => {
  models = await TestServer.start();
  pages = await TestServer.start([models.origin]);
  for (const { model, quantType } of cases)
    if (!models.models.has(`/models/${model}`)) models.serve(model, await convert(quantType));
  for (const { title, model, memory, options } of cases) {
    const all = [...nativeOptions, ...options];
    receipts.set(title, {
      file: await runNatively(models.model(model).bytes, memory, all),
      server: await runNatively(`${models.origin}/models/${model}`, memory, all),
    });
  }
});

test.afterAll(async () => {
  await pages.stop();
  await models.stop();
});

/** The budget is all the WebAssembly memory there is. */
function expectBudget(stats: Stats, memory: number): void {
  expect(stats.memory).toMatchObject({ budget: memory * MiB, wasm: memory * MiB });
}

async function expectTwin(
  tab: Tab,
  name: string,
  { title, memory, streamed }: Case,
  from: 'file' | 'server' = 'file',
): Promise<void> {
  const native = receipts.get(title)![from];
  const { text, stats } = await tab.call('generate', name, PROMPT, { ...generation, logitsHash: true });
  expect(stats.generation!.tokens).toEqual(native.generated_tokens);
  expect(stats.generation!.logitsHash).toBe(native.logits_hash);
  expect(text).toBe(native.text);
  expect(stats.generation!.promptTokens).toBe(native.prompt_tokens.length);
  expect(stats.generation!.end).toBe(native.ended);
  expect(stats.model.hash).toBe(native.model.hash);
  expect(stats.plan).toMatchObject({
    maxSeqLen: native.plan.max_seq_len,
    kv: native.plan.kv,
    pinnedSegments: native.plan.pinned_segments,
    segments: native.plan.segments,
    ringSlots: native.plan.ring_slots,
  });
  expect(stats.plan.pinnedSegments < stats.plan.segments).toBe(streamed);
  expectBudget(stats, memory);
}

const browsers: { title: string; launch: () => Promise<Browser>; variant: Variant | undefined; expected: Variant[] }[] =
  [
    {
      title: 'Chromium, relaxed SIMD',
      launch: launchChromium,
      variant: undefined,
      expected: ['relaxed', 'relaxedpairs'],
    },
    { title: 'Chromium, SIMD', launch: launchChromium, variant: 'simd', expected: ['simd'] },
    { title: 'Firefox', launch: launchFirefox, variant: undefined, expected: ['relaxed', 'relaxedpairs', 'simd'] },
    { title: 'WebKit', launch: launchWebKit, variant: undefined, expected: ['relaxed', 'relaxedpairs', 'simd'] },
  ];

for (const { title: browserTitle, launch, variant, expected } of browsers) {
  test.describe(browserTitle, () => {
    let browser: Browser;

    test.beforeAll(async () => {
      browser = await launch();
    });
    test.afterAll(async () => {
      await browser.close();
    });

    for (const one of cases) {
      test(one.title, async () => {
        const url = `${models.origin}/models/${one.model}`;
        const options = { memory: one.memory * MiB, ...(variant && { variant }), ...one.load };
        const size = models.model(one.model).bytes.length;

        const tab = await browser.open(pages.origin);
        const { stats } = await tab.call('load', 'a', url, options);
        expect(expected).toContain(stats.engine.variant);
        expect(stats.engine.isa).toBe(stats.engine.variant);
        expect(stats.io.cacheState).toBe(browser.keepsFiles ? 'complete' : 'off');
        expectBudget(stats, one.memory);
        await expectTwin(tab, 'a', one, browser.keepsFiles ? 'file' : 'server');
        await tab.call('close', 'a');
        await tab.close();

        const again = await browser.open(pages.origin);
        if (browser.keepsFiles) {
          await models.stop();
          try {
            const { stats: offline } = await again.call('load', 'b', url, options);
            expect(offline.io).toMatchObject({ network: 0, cacheState: 'complete', cachedBytes: size });
            expect(offline.io.cache).toBeGreaterThan(0);
            await expectTwin(again, 'b', one);
            await again.call('close', 'b');
          } finally {
            await models.resume();
          }
        }

        const fromFile = await again.call('loadFile', 'c', url, options);
        expect(fromFile.io).toMatchObject({ network: 0, cache: 0 });
        expect(fromFile.io.blob).toBeGreaterThan(0);
        await expectTwin(again, 'c', one);
        await again.call('close', 'c');
        await again.close();
      });
    }
  });
}
