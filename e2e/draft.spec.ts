// Draft models in a real browser: the native text, from one memory, with both models kept.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert, convertToGguf, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { TestServer } from './server.js';
import type { LoadOptions } from '../web/src/index.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time';
const greedy = { maxTokens: 60, temperature: 0, logitsHash: true, ignoreEos: true };
const drawn = { ...greedy, temperature: 0.9, seed: 5 };
const nativeOptions = ['--prompt', PROMPT, '--max-tokens', '60', '--ignore-eos'];

let plain: TestServer;
let isolated: TestServer;
let browser: Browser;
let url: string;
let small: string;
let gguf: string;
let native: Receipt[];
let tab: Tab;

test.beforeAll(async () => {
  plain = await TestServer.start();
  isolated = await TestServer.start([plain.origin], { isolated: true });
  const model = await convert('8bit');
  url = plain.serve('model.qsf', model);
  small = plain.serve('draft.qsf', await convert('q2_k'));
  gguf = plain.serve('draft.gguf', (await convertToGguf('q4_0')).gguf);
  native = [
    await runNatively(model, 16, [...nativeOptions, '--temperature', '0']),
    await runNatively(model, 16, [...nativeOptions, '--temperature', '0.9', '--seed', '5']),
  ];
  browser = await launchChromium();
});
test.afterAll(async () => {
  await browser.close();
  await isolated.stop();
  await plain.stop();
});
test.afterEach(() => tab.close());

/** Generates greedily and sampled, as natively without a draft. Gives the statistics. */
async function expectTwin(name: string) {
  for (const [i, how] of [greedy, drawn].entries()) {
    const { text, stats } = await tab.call('generate', name, PROMPT, how);
    expect(text).toBe(native[i]!.text);
    expect(stats.generation!.tokens).toEqual(native[i]!.generated_tokens);
    expect(stats.generation!.logitsHash).toBe(native[i]!.logits_hash);
    expect(stats.generation!.guesses?.right ?? 0).toBeGreaterThan(stats.draft ? 0 : -1);
  }
  return tab.call('stats', name);
}

for (const [where, memory, how] of [
  ['a page', 16, {}],
  ['a page that streams', 7.5, { maxSeqLen: 128 }],
  ['an isolated page with two threads', 16, { threads: 2 }],
] as const) {
  test(`the text is that of the model alone, inside the memory, in ${where}`, async () => {
    const { origin } = 'threads' in how ? isolated : plain;
    tab = await browser.open(origin);
    const options: LoadOptions = { memory: memory * MiB, ...how };
    await tab.call('load', 'alone', url, options);
    await expectTwin('alone');
    await tab.call('close', 'alone');

    const { progress, warnings } = await tab.call('load', 'a', url, { ...options, draft: small });
    expect(warnings).toEqual([]);
    expect(new Set(progress.map(({ of }) => of))).toEqual(new Set(['draft', undefined]));
    expect(progress.at(-1)).toMatchObject({ phase: 'ready' });
    const stats = await expectTwin('a');
    expect(stats.memory).toMatchObject({ budget: memory * MiB, wasm: memory * MiB });
    expect(stats.plan.draftBytes).toBe(stats.draft!.budget);
    expect(stats.draft!.budget).toBeLessThanOrEqual((memory * MiB) / 2);
    expect(stats.plan.ringSlots > 0).toBe(memory === 7.5);
    const { pinnedBytes, ringBytes, kvBytes, scratchBytes, fixedBytes, draftBytes, freeBytes } = stats.plan;
    const sum = pinnedBytes + ringBytes + kvBytes + scratchBytes + fixedBytes + draftBytes + freeBytes;
    expect(sum).toBe(memory * MiB - MiB);
    expect(stats.draft!.plan.pinnedBytes).toBeGreaterThanOrEqual(stats.draft!.model.weightBytes);
    expect(stats.draft!.io.cacheState).toBe('complete');
    await tab.call('close', 'a');
  });
}

test('a draft of another kind is made, and both are kept', async () => {
  tab = await browser.open(plain.origin);
  const options = { memory: 16 * MiB, draft: gguf };
  await tab.call('load', 'a', url, options);
  const first = await expectTwin('a');
  expect(first.draft!.model.madeFrom).toBe('GGUF');
  await tab.call('close', 'a');
  plain.calm();
  await tab.call('load', 'b', url, options);
  const second = await expectTwin('b');
  expect(second.draft!.model.madeFrom).toBeUndefined();
  expect(plain.sent).toBe(0);
  await tab.call('close', 'b');
});

test('tabs share a model with its draft', async () => {
  tab = await browser.open(plain.origin);
  const other = await browser.open(plain.origin);
  const options = { memory: 16 * MiB, draft: small, shared: true, sequences: 2 };
  await tab.call('load', 'a', url, options);
  await other.call('load', 'a', url, options);
  expect(other.page!.workers()).toHaveLength(0);
  const texts = await Promise.all([tab, other].map((of) => of.call('generate', 'a', PROMPT, greedy)));
  expect(texts.map(({ text }) => text)).toEqual([native[0]!.text, native[0]!.text]);
  await tab.close();
  tab = other;
  await expectTwin('a');
});

test('an abort ends a generation, and the next one is whole', async () => {
  tab = await browser.open(plain.origin);
  await tab.call('load', 'a', url, { memory: 16 * MiB, draft: small });
  const { reason, before, after, end } = await tab.call('abortGeneration', 'a', PROMPT, { maxTokens: 400 }, 4);
  expect(reason.name).toBe('AbortError');
  expect(after).toBe(before);
  expect(end).toBe('cancelled');
  await expectTwin('a');
  await tab.call('close', 'a');
});

test('a draft that is not at its address is refused as the draft', async () => {
  tab = await browser.open(plain.origin);
  const load = () => tab.call('load', 'a', url, { memory: 16 * MiB, draft: `${plain.origin}/nothing.qsf` });
  await expect(load()).rejects.toMatchObject({ code: 'http_status' });
  await expect(load()).rejects.toHaveProperty('message', expect.stringMatching(/^the draft model: /));
  await tab.call('load', 'a', url, { memory: 16 * MiB });
  await expectTwin('a');
  await tab.call('close', 'a');
});
