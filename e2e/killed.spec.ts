// Tabs whose process ends, as when the system kills it: a conversation that was saved goes on, and a save that was
// under way leaves the former one, or is whole.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert } from './native.js';
import { TestServer } from './server.js';
import type { ChatMessage } from '../web/src/index.js';

const MiB = 1024 * 1024;
const options = { memory: 32 * MiB };
const template =
  "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '\n' }}{% endfor %}{{ 'assistant:' if add_generation_prompt }}";
const talk = { template, maxTokens: 24, temperature: 0.9, seed: 7, logitsHash: true };
const texts = ['Tell me of a king.', 'And of his three sons?', 'What did they find?', 'And then?'];
const NAME = 'talk';

let pages: TestServer;
let browser: Browser;
let url: string;
let tab: Tab;

test.beforeAll(async () => {
  pages = await TestServer.start();
  url = pages.serve('model.qsf', await convert('8bit'));
  browser = await launchChromium();
});
test.afterAll(async () => {
  await browser.close();
  await pages.stop();
});
test.beforeEach(async () => {
  await reopen();
});
test.afterEach(async () => {
  await tab.close();
});

async function reopen(): Promise<void> {
  tab = await browser.open(pages.origin);
  await tab.call('load', 'a', url, options);
}

/** Ends the tab's process at once, with its workers. */
async function kill(): Promise<void> {
  const page = tab.page!;
  const crashed = page.waitForEvent('crash');
  const session = await page.context().newCDPSession(page);
  session.send('Page.crash').catch(() => undefined);
  await crashed;
  await page.close();
}

const save = (messages: ChatMessage[]) => tab.call('save', 'a', { messages, name: NAME });

/** The messages and the next answer after the saved conversation. */
async function goOn(text: string) {
  const { messages = [] } = await tab.call('restore', 'a', NAME);
  const next = await tab.call('converse', 'a', messages, [text], talk);
  return { messages: next.messages, answer: next.answers[0]! };
}

test('a conversation goes on after its tab was killed with the bits of one that was not', async () => {
  const whole = await tab.call('converse', 'a', [], texts, talk);
  expect(whole.answers[2]!.computed).toBeLessThan(whole.answers[0]!.computed + 40);

  const begun = await tab.call('converse', 'a', [], texts.slice(0, 2), talk);
  await save(begun.messages);
  const underWay = tab.call('generate', 'a', 'Once', { maxTokens: 400, ignoreEos: true });
  underWay.catch(() => undefined);
  await expect.poll(async () => (await tab.call('stats', 'a')).generation?.running).toBe(true);
  await kill();
  await reopen();
  const third = await goOn(texts[2]!);
  expect(third.messages).toEqual(whole.messages.slice(0, 6));
  // Nothing of the first two turns is computed again.
  expect(third.answer).toEqual(whole.answers[2]);

  await save(third.messages);
  await kill();
  await reopen();
  const fourth = await goOn(texts[3]!);
  expect(fourth.messages).toEqual(whole.messages);
  expect(fourth.answer).toEqual(whole.answers[3]);
  await tab.call('savedRemove', NAME);
});

/** What the worker does at the moment when it is killed, and whether the new save counts then. */
const moments: { at: string; counts: boolean; stop: () => void }[] = [
  {
    at: 'after half of the bytes',
    counts: false,
    stop: () => {
      const { prototype } = (globalThis as unknown as Scope).FileSystemSyncAccessHandle;
      const write = prototype.write;
      prototype.write = function (bytes, how) {
        write.call(this, bytes.subarray(0, bytes.length / 2), how);
        new BroadcastChannel('moment').postMessage('here');
        for (;;);
      };
    },
  },
  {
    at: 'before the bytes are durable',
    counts: false,
    stop: () => {
      const { prototype } = (globalThis as unknown as Scope).FileSystemSyncAccessHandle;
      prototype.flush = () => {
        new BroadcastChannel('moment').postMessage('here');
        for (;;);
      };
    },
  },
  {
    at: 'before the file has its name',
    counts: false,
    stop: () => {
      const { prototype } = FileSystemFileHandle as unknown as { prototype: { move: () => Promise<void> } };
      prototype.move = () => {
        new BroadcastChannel('moment').postMessage('here');
        return new Promise(() => {});
      };
    },
  },
  {
    at: 'before the former file is removed',
    counts: true,
    stop: () => {
      const remove = FileSystemDirectoryHandle.prototype.removeEntry;
      FileSystemDirectoryHandle.prototype.removeEntry = function (name, how) {
        if (name === 'unfinished') return remove.call(this, name, how);
        new BroadcastChannel('moment').postMessage('here');
        return new Promise(() => {});
      };
    },
  },
];

/** What workers have. */
interface Scope {
  FileSystemSyncAccessHandle: { prototype: SyncHandle };
}
interface SyncHandle {
  write(bytes: Uint8Array, how: { at: number }): number;
  flush(): void;
}

for (const { at, counts, stop } of moments) {
  test(`a tab that is killed while it saves, ${at}, leaves ${counts ? 'the new' : 'the former'} save`, async () => {
    const former = await tab.call('converse', 'a', [], texts.slice(0, 1), talk);
    await save(former.messages);
    const latter = await tab.call('converse', 'a', former.messages, texts.slice(1, 2), talk);
    const here = tab.page!.evaluate(
      () => new Promise<void>((resolve) => (new BroadcastChannel('moment').onmessage = () => resolve())),
    );
    for (const worker of tab.page!.workers()) await worker.evaluate(stop);
    save(latter.messages).catch(() => undefined);
    await here;
    await kill();

    await reopen();
    expect(await tab.call('savedList')).toMatchObject([{ name: NAME }]);
    const { messages } = await tab.call('restore', 'a', NAME);
    expect(messages).toEqual(counts ? latter.messages : former.messages);
    if (!counts) {
      const again = await tab.call('converse', 'a', former.messages, texts.slice(1, 2), talk);
      expect(again).toEqual(latter);
    }
    // What the killed tab left is in nobody's way.
    await save(latter.messages);
    expect((await tab.call('restore', 'a', NAME)).messages).toEqual(latter.messages);
    await tab.call('savedRemove', NAME);
    expect(await tab.call('savedList')).toEqual([]);
  });
}
