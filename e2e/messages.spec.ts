// A long conversation: the tab's memory after 20 messages and after 200, from /proc, each time after garbage was
// collected in the page and in its worker. A browser collects it when it likes; the most that it lets lie is bounded too.
import { chromium, expect, test } from '@playwright/test';
import type { BrowserServer, Page } from '@playwright/test';

import { tabOf } from './browsers.js';
import { chromiumArgs, chromiumPath } from './chromium.mjs';
import { convert } from './native.js';
import { renderersOf, status } from './processes.js';
import { TestServer } from './server.js';
import type { ChatMessage } from '../web/src/index.js';

const MB = 1e6;
const MiB = 1024 * 1024;
/**
 * Bytes that a tab may take in addition after 180 messages, and at most meanwhile: less than 90 kB for each. What a browser
 * keeps of collected garbage varies by 10 MB, with no trend from message 200 to message 600.
 */
const most = { grown: 16 * MB, meanwhile: 48 * MB };
const talk = {
  template: "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '\n' }}{% endfor %}",
  maxTokens: 2,
  ignoreEos: true,
  whenFull: 'drop',
} as const;

let server: TestServer;
let browser: BrowserServer;

test.beforeAll(async () => {
  server = await TestServer.start();
  const args = [...chromiumArgs, '--js-flags=--expose-gc'];
  browser = await chromium.launchServer({ executablePath: chromiumPath, args });
});
test.afterAll(async () => {
  await browser.close();
  await server.stop();
});

/** Anonymous memory of the largest tab, in bytes. */
const taken = () => Math.max(...renderersOf(browser.process().pid!).map((pid) => 1024 * (status(pid, 'RssAnon') ?? 0)));

/**
 * Anonymous memory once garbage is collected, as when the system lacks memory: the least of some looks, because the pages
 * go back to the system later.
 */
async function settled(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  let least = Infinity;
  for (let i = 0; i < 5; i++) {
    await session.send('Memory.simulatePressureNotification', { level: 'critical' });
    const collect = () => (globalThis as unknown as { gc: () => void }).gc();
    await page.evaluate(collect);
    for (const worker of page.workers()) await worker.evaluate(collect);
    await page.waitForTimeout(250);
    least = Math.min(least, taken());
  }
  return least;
}

test('a tab does not grow between message 20 and message 200', async () => {
  const client = await chromium.connect(browser.wsEndpoint());
  const page = await client.newPage();
  await page.goto(server.origin);
  await page.waitForFunction(() => 'call' in window);
  const tab = tabOf(page);
  const url = server.serve('model.qsf', await convert('8bit'));
  await tab.call('load', 'm', url, { memory: 16 * MiB, maxSeqLen: 256 });

  let messages: ChatMessage[] = [];
  let sent = 0;
  const sendUntil = async (n: number) => {
    const texts = Array.from({ length: n - sent }, (_, i) => `Message ${String(sent + i)}: what came then?`);
    ({ messages } = await tab.call('converse', 'm', messages, texts, talk));
    sent = n;
  };
  await sendUntil(20);
  // The context was full, so all of its memory was in use.
  expect(messages.length).toBeLessThan(2 * 20);
  const early = await settled(page);
  let peak = 0;
  const looking = setInterval(() => (peak = Math.max(peak, taken())), 50);
  await sendUntil(200);
  clearInterval(looking);
  expect(messages.length).toBeLessThan(2 * 20);
  const late = await settled(page);
  const [grown, meanwhile] = [late - early, peak - early];
  const figures = `${(grown / MB).toFixed(1)} MB, meanwhile ${(meanwhile / MB).toFixed(1)}, from ${(early / MB).toFixed(1)}`;
  test.info().annotations.push({ type: 'growth from message 20 to 200', description: figures });
  console.log(`growth from message 20 to 200: ${figures}`);
  // It was the right process: the engine's memory is there.
  expect(early).toBeGreaterThan(16 * MiB);
  expect(grown).toBeLessThan(most.grown);
  expect(meanwhile).toBeLessThan(most.meanwhile);
  await client.close();
});
