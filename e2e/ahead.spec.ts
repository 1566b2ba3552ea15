// Reading a kept model by another worker, ahead of what is asked for or into the engine's memory, where pages are isolated: the
// same bits with it and without, and what is done when it fails. In a private
// window every read goes through another process, so there it begins by itself.
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { launchChromium, tabOf } from './browsers.js';
import { convert, runNatively } from './native.js';
import type { Receipt } from './native.js';
import type { Actions } from './page.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time there was a little fox who';
const generation = { maxTokens: 30, temperature: 0.8, seed: 11, ignoreEos: true, logitsHash: true };
const nativeOptions = [
  '--prompt',
  PROMPT,
  '--max-tokens',
  '30',
  '--temperature',
  '0.8',
  '--seed',
  '11',
  '--ignore-eos',
];

/** In MiB: all weights in memory, and less than the weights. */
const [RESIDENT, STREAMED] = [16, 4];

let server: TestServer;
let url: string;
const servers = new Map<boolean, TestServer>();
const receipts = new Map<number, Receipt>();

test.beforeAll(async () => {
  const model = await convert('8bit');
  for (const isolated of [true, false]) {
    server = await TestServer.start([], { isolated });
    url = server.serve('model.qsf', model);
    servers.set(isolated, server);
  }
  for (const memory of [RESIDENT, STREAMED]) receipts.set(memory, await runNatively(url, memory, nativeOptions));
});
test.afterAll(async () => {
  for (const one of servers.values()) await one.stop();
});

const call = <A extends keyof Actions>(page: Page, action: A, ...args: Parameters<Actions[A]>) =>
  tabOf(page).call(action, ...args);

/** Opens the model from the browser's own files. */
async function open(page: Page, memory: number, threads: number): Promise<void> {
  await page.goto(server.origin);
  await page.waitForFunction(() => 'call' in window);
  await call(page, 'load', 'a', url, { memory: memory * MiB, threads });
  expect((await call(page, 'stats', 'a')).io.cacheState).toBe('complete');
}

/** The text of the native engine, of which so much was read; gives how much that is. */
async function expectTwin(page: Page, memory: number): Promise<number> {
  const native = receipts.get(memory)!;
  const before = (await call(page, 'stats', 'a')).io.engine;
  const { text, stats } = await call(page, 'generate', 'a', PROMPT, generation);
  expect(stats.generation!.tokens).toEqual(native.generated_tokens);
  expect(stats.generation!.logitsHash).toBe(native.logits_hash);
  expect(text).toBe(native.text);
  return stats.io.engine - before;
}

/** Generates until there is a worker more, which reads. */
async function untilReader(page: Page, threads: number): Promise<void> {
  await expect
    .poll(
      async () => {
        await expectTwin(page, STREAMED);
        return page.workers().length;
      },
      { timeout: 60_000 },
    )
    .toBe(threads + 1);
}

/** The worker that came last. */
const reader = (page: Page) => page.workers().at(-1)!;

for (const { threads, isolated, name } of [
  { threads: 1, isolated: false, name: 'qsf-reader' },
  { threads: 1, isolated: true, name: 'qsf-filler' },
  { threads: 2, isolated: true, name: 'qsf-filler' },
]) {
  test.describe(`${String(threads)} threads in a private window, ${isolated ? 'isolated' : 'as it is'}`, () => {
    test.beforeAll(() => {
      server = servers.get(isolated)!;
      url = `${server.origin}/models/model.qsf`;
    });

    test('give the same bits when reading ahead', async ({ page }) => {
      await open(page, STREAMED, threads);
      await untilReader(page, threads);
      const named = await reader(page).evaluate(() => (globalThis as { name?: string }).name);
      expect(named!.split(' ')[0]).toBe(name);
      const bytes = await expectTwin(page, STREAMED);
      expect(await expectTwin(page, STREAMED)).toBe(bytes);
      await call(page, 'close', 'a');
      await expect.poll(() => page.workers().length, { timeout: 30_000 }).toBe(0);
      // It let go of the file.
      await call(page, 'cacheRemove', url);
      expect(await call(page, 'cacheList')).toEqual([]);
    });

    test('give them when nothing is streamed, and start no reader', async ({ page }) => {
      await open(page, RESIDENT, threads);
      for (let i = 0; i < 3; i++) await expectTwin(page, RESIDENT);
      expect(page.workers()).toHaveLength(threads);
    });

    test('give them when the reader fails', async ({ page }) => {
      await open(page, STREAMED, threads);
      await untilReader(page, threads);
      await reader(page).evaluate(() => {
        setTimeout(() => {
          throw new Error('failed');
        });
      });
      await expect.poll(() => page.workers().length).toBe(threads);
      await expectTwin(page, STREAMED);
      await expectTwin(page, STREAMED);
    });

    test('give them when the reader is gone without a word', async ({ page }) => {
      await open(page, STREAMED, threads);
      await untilReader(page, threads);
      await reader(page).evaluate(() => {
        globalThis.onmessage = () => undefined;
        // Of the counts in shared memory it sees the first that it looks at for ever.
        const seen = new Map<number, number>();
        const load = Atomics.load.bind(Atomics) as (state: Int32Array, at: number) => number;
        const frozen = (state: Int32Array, at: number) => seen.get(at) ?? seen.set(at, load(state, at)).get(at);
        Object.assign(Atomics, { load: frozen, wait: () => 'timed-out' });
      });
      // So many passes that it is tried again where it was found to be slow.
      for (let tokens = 0; tokens < 140; tokens += generation.maxTokens) await expectTwin(page, STREAMED);
      await call(page, 'close', 'a');
    });

    test('give them when no reader can be started', async ({ page }) => {
      await open(page, STREAMED, threads);
      const engine = page.workers().find((worker) => worker.url().endsWith('worker.js'))!;
      await engine.evaluate(() => {
        const elsewhere = (Started: typeof Worker, [address, options]: [string, WorkerOptions]) =>
          new Started(`${address}.none`, options);
        globalThis.Worker = new Proxy(Worker, { construct: elsewhere });
      });
      for (let i = 0; i < 3; i++) await expectTwin(page, STREAMED);
      expect(page.workers()).toHaveLength(threads);
    });
  });
}

test('what is streamed from the network is read ahead in fewer requests', async ({ page }) => {
  await page.goto(server.origin);
  await page.waitForFunction(() => 'call' in window);
  await call(page, 'load', 'a', url, { memory: STREAMED * MiB, threads: 1, cache: false });
  await expectTwin(page, STREAMED);
  server.calm();
  await expectTwin(page, STREAMED);
  const { plan } = await call(page, 'stats', 'a');
  const streamed = plan.segments - plan.pinnedSegments;
  expect(server.asked.length).toBeLessThan((generation.maxTokens * streamed) / 2);
});

test('a window that keeps its files gives the same bits', async () => {
  const browser = await launchChromium();
  try {
    const { page } = await browser.open(server.origin);
    await open(page!, STREAMED, 1);
    for (let i = 0; i < 3; i++) await expectTwin(page!, STREAMED);
  } finally {
    await browser.close();
  }
});
