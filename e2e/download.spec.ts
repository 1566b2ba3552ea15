// Downloads that go wrong, in a real browser: killed, changed, refused, broken, without ranges, in two tabs at once.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time';
const options = { memory: 16 * MiB };
const generation = { maxTokens: 24, temperature: 0, logitsHash: true };
const nativeOptions = ['--prompt', PROMPT, '--max-tokens', '24', '--temperature', '0'];

let pages: TestServer;
let models: TestServer;
let browser: Browser;
let one: { bytes: Buffer; receipt: Receipt };
let other: { bytes: Buffer; receipt: Receipt };

test.beforeAll(async () => {
  models = await TestServer.start();
  pages = await TestServer.start([models.origin]);
  const twin = async (quantType: string) => {
    const bytes = await convert(quantType);
    return { bytes, receipt: await runNatively(models.serve('native.qsf', bytes), 16, nativeOptions) };
  };
  one = await twin('8bit');
  other = await twin('4bit');
  browser = await launchChromium();
});

test.afterAll(async () => {
  await browser.close();
  await pages.stop();
  await models.stop();
});

test.beforeEach(() => {
  models.calm();
  pages.calm();
});

async function expectTwin(tab: Tab, name: string, { receipt }: { receipt: Receipt }): Promise<void> {
  const { text, stats } = await tab.call('generate', name, PROMPT, generation);
  expect(text).toBe(receipt.text);
  expect(stats.generation!.tokens).toEqual(receipt.generated_tokens);
  expect(stats.generation!.logitsHash).toBe(receipt.logits_hash);
  expect(stats.model.hash).toBe(receipt.model.hash);
}

const cached = async (tab: Tab, url: string) => (await tab.call('cacheState', url)).bytes;

test('a killed download goes on where it was', async () => {
  const url = models.serve('killed.qsf', one.bytes, { bytesPerSecond: 300_000 });
  const first = await browser.open(pages.origin);
  await first.call('beginLoad', url, options);
  await expect.poll(() => cached(first, url)).toBeGreaterThan(MiB);
  await first.close();

  const second = await browser.open(pages.origin);
  const kept = await second.call('cacheState', url);
  expect(kept).toMatchObject({ total: one.bytes.length, complete: false });
  expect(kept.bytes).toBeGreaterThan(MiB);
  models.model('killed.qsf').bytesPerSecond = 0;
  models.calm();
  const { stats } = await second.call('load', 'a', url, options);
  // The first request's 64 KiB come anew, for they tell the file's version. A request takes along up to 4 KiB between two
  // pieces, which may be kept, or on their way by another that is more urgent.
  const most = one.bytes.length - kept.bytes + 64 * 1024 + models.asked.length * 4096;
  // 95 pieces are missing. Neighbours go together, more of them the less the engine waits for single ones.
  expect(models.asked.length).toBeLessThan(40);
  expect(stats.io.network).toBeLessThanOrEqual(most);
  expect(models.sent).toBeLessThanOrEqual(most);
  expect(stats.io.cacheState).toBe('complete');
  await expectTwin(second, 'a', one);
  await second.close();
});

for (const sameOrigin of [true, false]) {
  test(`a file that changes while it is fetched is begun anew (${sameOrigin ? 'own' : 'other'} origin)`, async () => {
    const server = sameOrigin ? pages : models;
    const url = server.serve('changing.qsf', one.bytes, { bytesPerSecond: 300_000 });
    const tab = await browser.open(pages.origin);
    // One request at a time, so that some are made after the change.
    const loading = tab.call('load', 'a', url, { ...options, network: { parallel: 1 } });
    await expect.poll(() => cached(tab, url)).toBeGreaterThan(MiB / 2);
    server.serve('changing.qsf', other.bytes);
    const { stats } = await loading;
    expect(stats.model.bytes).toBe(other.bytes.length);
    expect(stats.io.cacheState).toBe('complete');
    await expectTwin(tab, 'a', other);
    expect(server.asked.length).toBeGreaterThan(1);
    await tab.close();
  });
}

test('a file that changed since the last visit is fetched anew', async () => {
  const url = models.serve('visited.qsf', one.bytes);
  const tab = await browser.open(pages.origin);
  await tab.call('load', 'a', url, options);
  await tab.call('close', 'a');
  models.calm();
  await tab.call('load', 'b', url, options);
  expect(models.sent).toBe(0);
  await tab.call('close', 'b');
  models.serve('visited.qsf', other.bytes);
  await tab.call('load', 'c', url, options);
  await expectTwin(tab, 'c', other);
  await tab.close();
});

for (const cache of [true, false]) {
  test(`a server without ranges is read as a whole (${cache ? 'with' : 'without'} cache), across a broken connection`, async () => {
    const url = models.serve('whole.qsf', one.bytes, { ranges: false });
    models.fault = (n) => (n === 0 ? { breakAfter: MiB } : undefined);
    const tab = await browser.open(pages.origin);
    const network = { retryDelay: 10 };
    const { stats } = await tab.call('load', 'a', url, { ...options, cache, network });
    expect(stats.io.cacheState).toBe(cache ? 'complete' : 'off');
    expect(models.asked.map(({ status }) => status)).toEqual([200, 200]);
    await expectTwin(tab, 'a', one);
    await tab.call('close', 'a');
    if (cache) {
      await models.stop();
      try {
        await tab.call('load', 'b', url, options);
        await expectTwin(tab, 'b', one);
      } finally {
        await models.resume();
        await tab.call('cacheRemove', url).catch(() => undefined);
      }
    }
    await tab.close();
  });
}

test('a server that fails for a while is asked again, with growing pauses', async () => {
  const url = models.serve('flaky.qsf', one.bytes);
  const times: number[] = [];
  models.fault = (n) => {
    times.push(performance.now());
    return n < 3 ? { status: 503 } : n === 5 ? { breakAfter: 1000 } : undefined;
  };
  const tab = await browser.open(pages.origin);
  await tab.call('load', 'a', url, { ...options, network: { retryDelay: 100 } });
  await expectTwin(tab, 'a', one);
  // At least half of 100, 200 and 400 ms.
  expect(times[1]! - times[0]!).toBeGreaterThan(49);
  expect(times[2]! - times[1]!).toBeGreaterThan(99);
  expect(times[3]! - times[2]!).toBeGreaterThan(199);
  await tab.close();
});

test('a server that only fails ends in its status, and one that is not there in a network error', async () => {
  const url = models.serve('down.qsf', one.bytes);
  const network = { retries: 2, retryDelay: 5 };
  const tab = await browser.open(pages.origin);
  models.fault = () => ({ status: 503 });
  await expect(tab.call('load', 'a', url, { ...options, network })).rejects.toMatchObject({ code: 'http_status' });
  expect(models.asked).toHaveLength(3);
  models.calm();
  const absent = `${models.origin}/models/none.qsf`;
  await expect(tab.call('load', 'a', absent, { ...options, network })).rejects.toMatchObject({ code: 'http_status' });
  await models.stop();
  try {
    await expect(tab.call('load', 'a', url, { ...options, network })).rejects.toMatchObject({ code: 'network_error' });
  } finally {
    await models.resume();
  }
  await tab.close();
});

test('damaged bytes are refused and never kept', async () => {
  const bytes = Buffer.from(one.bytes);
  bytes[bytes.length >> 1]! ^= 1;
  const url = models.serve('damaged.qsf', bytes);
  const tab = await browser.open(pages.origin);
  await expect(tab.call('load', 'a', url, options)).rejects.toMatchObject({ code: 'bad_checksum' });
  expect((await tab.call('cacheState', url)).bytes).toBeLessThan(bytes.length);
  // Once the server has the right bytes under a new version, the same page gets them.
  models.serve('damaged.qsf', one.bytes);
  await tab.call('load', 'b', url, options);
  await expectTwin(tab, 'b', one);
  await tab.close();
});

test('in the background, the first prompt is computed while the rest arrives', async () => {
  const url = models.serve('background.qsf', one.bytes, { bytesPerSecond: 400_000 });
  const tab = await browser.open(pages.origin);
  const { stats } = await tab.call('load', 'a', url, { ...options, background: true });
  expect(stats.io.network).toBeLessThan(one.bytes.length / 2);
  await expectTwin(tab, 'a', one);
  await expect.poll(async () => (await tab.call('stats', 'a')).io.cacheState).toBe('complete');
  // Nothing was fetched twice but the first request's 64 KiB.
  expect((await tab.call('stats', 'a')).io.network).toBeLessThanOrEqual(one.bytes.length + 64 * 1024);
  await tab.close();
});

test('two tabs share one cache', async () => {
  const url = models.serve('shared.qsf', one.bytes);
  const first = await browser.open(pages.origin);
  await first.call('load', 'a', url, options);
  const second = await browser.open(pages.origin);
  models.calm();
  const { stats } = await second.call('load', 'b', url, options);
  expect(stats.io.cacheState).toBe('shared');
  expect(models.sent).toBe(0);
  await expectTwin(second, 'b', one);
  await expectTwin(first, 'a', one);
  await expect(second.call('cacheRemove', url)).rejects.toMatchObject({ code: 'bad_state' });
  await second.close();
  await first.close();
});

test('two tabs that open a model at once fetch it nearly once', async () => {
  const url = models.serve('at-once.qsf', one.bytes, { bytesPerSecond: 2_000_000 });
  const tabs = await Promise.all([browser.open(pages.origin), browser.open(pages.origin)]);
  expect(tabs[0].page!.context()).toBe(tabs[1].page!.context());
  await Promise.all(tabs.map((tab, i) => tab.call('load', `at-once-${String(i)}`, url, options)));
  // Each asks for the beginning, by which it knows the file.
  expect(models.sent).toBeGreaterThanOrEqual(one.bytes.length);
  expect(models.sent).toBeLessThanOrEqual(one.bytes.length + 2 * 64 * 1024);
  await Promise.all(tabs.map((tab, i) => expectTwin(tab, `at-once-${String(i)}`, one)));
  expect(models.sent).toBeLessThanOrEqual(one.bytes.length + 2 * 64 * 1024);
  for (const tab of tabs) await tab.close();
});

test('the cache can be listed and emptied', async () => {
  const url = models.serve('listed.qsf', one.bytes);
  const tab = await browser.open(pages.origin);
  const before = Date.now();
  await tab.call('load', 'a', url, options);
  const size = one.bytes.length;
  const [entry] = (await tab.call('cacheList')).filter((kept) => kept.url === url);
  expect(entry).toMatchObject({ bytes: size, total: size, complete: true });
  expect(entry!.used).toBeGreaterThanOrEqual(before - 1000); // a file's time may have whole seconds
  expect(entry!.used).toBeLessThanOrEqual(Date.now());
  expect((await tab.call('cacheUsage')).bytes).toBeGreaterThanOrEqual(size);
  await tab.call('close', 'a');
  await tab.call('cacheRemove', url);
  expect(await tab.call('cacheState', url)).toEqual({ url, bytes: 0, total: 0, complete: false });
  models.calm();
  await tab.call('load', 'b', url, options);
  expect(models.sent).toBeGreaterThanOrEqual(one.bytes.length - 4096);
  await tab.close();
});

test('what is not a model is not kept', async () => {
  const url = models.serve('page.html', Buffer.from('<!doctype html>'.repeat(20_000)));
  const whole = models.serve('whole.html', Buffer.from('<!doctype html>'.repeat(20_000)), { ranges: false });
  const tab = await browser.open(pages.origin);
  const listed = async () => (await tab.call('cacheList')).map((kept) => kept.url);
  const before = await listed();
  for (const wrong of [url, whole]) {
    await expect(tab.call('load', 'a', wrong, options)).rejects.toMatchObject({ code: 'bad_magic' });
  }
  expect(await listed()).toEqual(before);
  const left = () =>
    tab.page!.evaluate(async () => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('qsf');
      let folders = 0;
      for await (const name of root.keys()) folders += name ? 1 : 0;
      return folders;
    });
  await expect.poll(left).toBe(before.length);
  await tab.close();
});

test('a limit makes room for the newest, and age removes the others', async () => {
  const tab = await browser.open(pages.origin);
  for (const { url } of await tab.call('cacheList')) await tab.call('cacheRemove', url);
  const [a, b] = [models.serve('first.qsf', one.bytes), models.serve('second.qsf', one.bytes)];
  const size = one.bytes.length;
  const kept = async () => (await tab.call('cacheList')).map(({ url }) => url);
  for (const url of [a, b]) {
    const { stats } = await tab.call('load', 'm', url, { ...options, cacheLimit: size * 1.5 });
    expect(stats.io.cacheState).toBe('complete');
    await tab.call('close', 'm');
    expect(await kept()).toEqual([url]);
  }
  const { stats } = await tab.call('load', 'm', a, { ...options, cacheLimit: size / 2 });
  expect(stats.io.cacheState).toBe('off');
  await tab.call('close', 'm');
  expect(await kept()).toEqual([b]);
  expect(await tab.call('cachePrune', { maxAge: 60_000 })).toEqual([]);
  expect(await tab.call('cachePrune', { maxAge: 0 })).toEqual([b]);
  expect(await tab.call('cacheUsage')).toMatchObject({ models: 0, bytes: 0 });
  await tab.close();
});

test('a model that nobody holds lets go of its worker and its cache', async () => {
  const url = models.serve('abandoned.qsf', one.bytes);
  const tab = await browser.open(pages.origin);
  await tab.call('abandon', url, options);
  expect(tab.page!.workers()).toHaveLength(1);
  await expect(tab.call('cacheRemove', url)).rejects.toMatchObject({ code: 'bad_state' });
  await expect
    .poll(async () => {
      await tab.page!.requestGC();
      return tab.page!.workers().length;
    })
    .toBe(0);
  await tab.call('cacheRemove', url);
  await tab.close();
});

test('without a cache nothing is kept', async () => {
  const url = models.serve('uncached.qsf', one.bytes);
  const tab = await browser.open(pages.origin);
  const { stats } = await tab.call('load', 'a', url, { ...options, cache: false });
  expect(stats.io.cacheState).toBe('off');
  await expectTwin(tab, 'a', one);
  expect((await tab.call('cacheState', url)).bytes).toBe(0);
  await tab.close();
});
