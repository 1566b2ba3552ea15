// One engine for several tabs: what is computed for each, turns, and the end of the tab that computes.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert } from './native.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
// Streamed, so that a generation is under way long enough to be cut off.
const options = { memory: 4 * MiB, shared: true };
const greedy = { maxTokens: 30, temperature: 0, logitsHash: true };

let server: TestServer;
let browser: Browser;
let url: string;
test.beforeAll(async () => {
  server = await TestServer.start();
  url = server.serve('shared.qsf', await convert('8bit'));
  browser = await launchChromium();
});
test.afterAll(async () => {
  await browser.close();
  await server.stop();
});

/** Whether each tab has workers: one computes, and another may read ahead where reading is slow. */
const busy = (...tabs: Tab[]) => tabs.map(({ page }) => page!.workers().length > 0);

test('tabs share one worker and take turns, and the next one goes on when it is closed', async () => {
  const [first, second, third] = [
    await browser.open(server.origin),
    await browser.open(server.origin),
    await browser.open(server.origin),
  ];
  const { progress } = await first.call('load', 'm', url, options);
  expect(progress.at(-1)).toMatchObject({ phase: 'ready' });
  await second.call('load', 'm', url, options);
  await third.call('load', 'm', url, options);
  expect(busy(first, second, third)).toEqual([true, false, false]);

  const alone = await first.call('generate', 'm', 'The king', greedy);
  const prompts = ['The king', 'Once upon a time', 'The king'];
  const all = await Promise.all([first, second, third].map((tab, i) => tab.call('generate', 'm', prompts[i]!, greedy)));
  expect(all[0]!.text).toBe(alone.text);
  expect(all[2]!.text).toBe(alone.text);
  expect(all[1]!.text).not.toBe(alone.text);
  await expect(first.call('generate', 'm', 'And', { ...greedy, continue: true })).rejects.toMatchObject({
    code: 'bad_state',
  });

  // A tab that leaves its loop lets the next one in.
  const left = await second.call('breakGeneration', 'm', 'Once', { maxTokens: 400 }, 3);
  expect(left).toMatchObject({ end: 'cancelled' });
  expect((await third.call('generate', 'm', 'The king', greedy)).text).toBe(alone.text);

  const cut = second.call('generate', 'm', 'Once', { maxTokens: 400 });
  const failed = expect(cut).rejects.toMatchObject({ code: 'cancelled' });
  await expect.poll(async () => (await third.call('stats', 'm')).generation?.running).toBe(true);
  await first.close();
  await failed;
  const after = await second.call('generate', 'm', 'The king', greedy);
  expect(after.text).toBe(alone.text);
  expect(after.stats.io.network).toBe(0);
  expect(busy(second, third).sort()).toEqual([false, true]);
  await third.call('close', 'm');
  await second.call('close', 'm');
  await expect.poll(() => busy(second, third)).toEqual([false, false]);
});

test('a tab that is closed while it generates, or waits to, lets the others in', async () => {
  const [first, second, third] = [
    await browser.open(server.origin),
    await browser.open(server.origin),
    await browser.open(server.origin),
  ];
  for (const tab of [first, second, third]) await tab.call('load', 'm', url, options);
  const alone = await first.call('generate', 'm', 'The king', greedy);
  const endless = { maxTokens: 4000, ignoreEos: true };
  const running = () => expect.poll(async () => (await first.call('stats', 'm')).generation?.running);

  second.call('generate', 'm', 'Once', endless).catch(() => undefined);
  await running().toBe(true);
  third.call('generate', 'm', 'And', endless).catch(() => undefined);
  await third.close();
  await second.close();
  await running().toBe(false);
  expect((await first.call('generate', 'm', 'The king', greedy)).text).toBe(alone.text);
  await first.close();
});

test('other options are another engine', async () => {
  const [first, second] = [await browser.open(server.origin), await browser.open(server.origin)];
  await first.call('load', 'm', url, options);
  const { stats } = await second.call('load', 'm', url, { ...options, memory: 8 * MiB });
  expect(stats.memory.wasm).toBe(8 * MiB);
  expect(busy(first, second)).toEqual([true, true]);
  await first.close();
  await second.close();
});

test('conversations of two tabs go on with one engine, and with the next one when its tab is closed', async () => {
  const [first, second] = [await browser.open(server.origin), await browser.open(server.origin)];
  const template = "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '\n' }}{% endfor %}";
  const talk = { template, maxTokens: 12, temperature: 0, logitsHash: true };
  const with32 = { ...options, memory: 32 * MiB };
  const [king, dog] = [
    ['Tell me of a king.', 'And then?', 'And after that?'],
    ['A dog ran away.', 'Where to?', 'And then?'],
  ];
  await first.call('load', 'm', url, with32);
  const alone = [await first.call('converse', 'm', [], king, talk), await first.call('converse', 'm', [], dog, talk)];
  const bits = ({ answers }: { answers: { tokens: number[]; logitsHash?: string | undefined }[] }) =>
    answers.map(({ tokens, logitsHash }) => ({ tokens, logitsHash }));

  await second.call('load', 'm', url, with32);
  expect(busy(first, second)).toEqual([true, false]);
  const both = await Promise.all([
    first.call('converse', 'm', [], king.slice(0, 2), talk),
    second.call('converse', 'm', [], dog.slice(0, 2), talk),
  ]);
  expect(both.map(bits)).toEqual(alone.map((one) => bits(one).slice(0, 2)));
  await first.close();
  const last = await second.call('converse', 'm', both[1].messages, dog.slice(2), talk);
  expect(last.messages).toEqual(alone[1]!.messages);
  expect(bits(last)).toEqual(bits(alone[1]!).slice(2));
  expect(busy(second)).toEqual([true]);
  await second.close();
});
