// Threads: used where the page is isolated, the same bits with any number of them, and gone when the model is closed.
import { expect, test } from '@playwright/test';

import type { Variant } from '../web/src/index.js';
import { launchChromium, tabOf } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { workerThreadsOf } from './processes.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time there was a little fox who';
const generation = { maxTokens: 40, temperature: 0.8, seed: 11, logitsHash: true };
const nativeOptions = ['--prompt', PROMPT, '--max-tokens', '40', '--temperature', '0.8', '--seed', '11'];
const variants: Variant[] = ['relaxed', 'relaxedpairs', 'simd'];

/** In MiB: all weights in memory, and less than the weights. */
const budgets = [16, 4];

let isolated: TestServer;
let plain: TestServer;
let browser: Browser;
let url: string;
const receipts = new Map<number, Receipt>();

test.beforeAll(async () => {
  plain = await TestServer.start();
  isolated = await TestServer.start([plain.origin], { isolated: true });
  const model = await convert('8bit');
  url = plain.serve('model.qsf', model);
  // Each page keeps the model before it plans, as if it had been given the file.
  for (const memory of budgets) receipts.set(memory, await runNatively(model, memory, nativeOptions));
  browser = await launchChromium();
});
test.afterAll(async () => {
  await browser.close();
  await isolated.stop();
  await plain.stop();
});

async function expectTwin(tab: Tab, name: string, memory: number): Promise<void> {
  const native = receipts.get(memory)!;
  const { text, stats } = await tab.call('generate', name, PROMPT, generation);
  expect(stats.generation!.logitsHash).toBe(native.logits_hash);
  expect(stats.generation!.tokens).toEqual(native.generated_tokens);
  expect(text).toBe(native.text);
  expect(stats.plan).toMatchObject({
    maxSeqLen: native.plan.max_seq_len,
    pinnedSegments: native.plan.pinned_segments,
    ringSlots: native.plan.ring_slots,
  });
  expect(stats.memory).toMatchObject({ budget: memory * MiB, wasm: memory * MiB });
}

test.describe('in an isolated page', () => {
  let tab: Tab;
  test.beforeEach(async () => {
    tab = await browser.open(isolated.origin);
  });
  test.afterEach(async () => {
    await tab.close();
  });

  for (const variant of variants) {
    for (const threads of [1, 2, 3, 8]) {
      test(`${String(threads)} threads give the bits of the native engine (${variant})`, async () => {
        for (const memory of budgets) {
          // From the network, then from the browser's own files, then from a File.
          for (const [name, action] of [
            ['network', 'load'],
            ['cache', 'load'],
            ['file', 'loadFile'],
          ] as const) {
            await tab.call(action, name, url, { memory: memory * MiB, variant, threads });
            const { engine } = await tab.call('stats', name);
            expect(engine).toMatchObject({ variant, isa: variant, threads });
            await expectTwin(tab, name, memory);
            await tab.call('close', name);
          }
          await tab.call('cacheRemove', url);
        }
      });
    }
  }

  test('an aborted generation leaves nothing behind', async () => {
    await tab.call('load', 'a', url, { memory: 4 * MiB, threads: 2 });
    const long = { maxTokens: 400, temperature: 0, ignoreEos: true };
    const aborted = await tab.call('abortGeneration', 'a', PROMPT, long, 5);
    expect(aborted).toMatchObject({ reason: { name: 'AbortError' }, atOnce: true, end: 'cancelled' });
    expect(aborted.after).toBe(aborted.before);
    await expectTwin(tab, 'a', 4);
  });

  test('text goes in and out of shared memory', async () => {
    await tab.call('load', 'a', url, { memory: 4 * MiB, threads: 2 });
    const text = 'The king’s cat — “Mew”';
    const ids = await tab.call('tokenize', 'a', text);
    expect(await tab.call('detokenize', 'a', ids)).toBe(text);
    await expect(tab.call('generate', 'a', [9_999_999], generation)).rejects.toMatchObject({ code: 'bad_token' });
  });

  test('a few threads are the default', async () => {
    const { stats } = await tab.call('load', 'a', url, { memory: 4 * MiB });
    const { processors } = await tab.call('host');
    expect(stats.engine.threads).toBeLessThanOrEqual(Math.min(processors, 4));
    expect(stats.engine.threads > 1).toBe(processors > 1);
  });

  test('more threads than there can be are refused', async () => {
    for (const threads of [0, 9, 1.5, -1]) {
      const refused = tab.call('load', 'a', url, { memory: 4 * MiB, threads });
      await expect(refused).rejects.toMatchObject({ code: 'bad_argument' });
    }
  });
});

test('a page that is not isolated computes with one thread, and says so when more are asked for', async () => {
  const tab = await browser.open(plain.origin);
  const { stats } = await tab.call('load', 'a', url, { memory: 4 * MiB });
  expect(stats.engine.threads).toBe(1);
  await expectTwin(tab, 'a', 4);
  const refused = tab.call('load', 'b', url, { memory: 4 * MiB, threads: 2 });
  await expect(refused).rejects.toMatchObject({ name: 'QSFError', code: 'unsupported_host' });
  await tab.close();
});

test('close() ends every thread', async ({ page }) => {
  await page.goto(isolated.origin);
  await page.waitForFunction(() => 'call' in window);
  const tab = tabOf(page);
  const threads = () => workerThreadsOf(process.pid);
  await expect.poll(threads).toBe(0);
  // Chromium may keep a worker that ends while one that it started does: of ten times, once.
  for (let i = 0; i < 20; i++) {
    await tab.call('load', 'a', url, { memory: budgets[i % 2]! * MiB, threads: 3 });
    expect(threads()).toBeGreaterThanOrEqual(3);
    await tab.call('generate', 'a', PROMPT, { maxTokens: 10 });
    await tab.call('close', 'a');
  }
  await expect.poll(threads, { timeout: 30_000 }).toBe(0);
});
