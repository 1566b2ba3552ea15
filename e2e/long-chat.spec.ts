// Long conversations in the demo page: 200 messages in one tab, most of them after the context was full, and a long one
// that is opened.
import { writeFileSync } from 'node:fs';

import { expect, test } from '@playwright/test';
import type { CDPSession, Page } from '@playwright/test';

import { Demo, openAt, patience, planned } from './demo.js';
import { convertForChat } from './native.js';
import { renderersOf, status } from './processes.js';

const MB = 1e6;

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
  const template = '{% for m in messages %}{{ m.content }}\n{% endfor %}';
  writeFileSync(`${demo.folder}/models/chat.gguf`, await convertForChat(template));
});
test.afterAll(async () => {
  await demo.stop();
});

async function visit(page: Page, tokens: number): Promise<void> {
  await page.goto(demo.address);
  await planned(page);
  await openAt(page, `${demo.address}models/chat.gguf`);
  await expect(page.locator('#message')).toBeVisible(patience);
  await planned(page);
  await page.locator('#maxTokens').evaluate((field, n) => ((field as HTMLInputElement).value = n), String(tokens));
}

/** Sends a message as a visitor does, and waits for the end of the answer. The page itself waits: it is 100 times faster. */
const say = (page: Page, text: string) =>
  page.evaluate(
    (text) =>
      new Promise<void>((resolve) => {
        const [field, send, transcript] = ['message', 'send', 'transcript'].map((id) => document.getElementById(id)!);
        let began = false;
        const observer = new MutationObserver(() => {
          began ||= transcript!.classList.contains('is-writing');
          if (!began || transcript!.classList.contains('is-writing')) return;
          observer.disconnect();
          resolve();
        });
        observer.observe(transcript!, { attributes: true });
        (field as HTMLTextAreaElement).value = text;
        send!.click();
      }),
    text,
  );

/** Returns bytes of the tab after a collection of garbage: the renderer's anonymous memory, and the heap of the page. */
async function memoryOf(session: CDPSession): Promise<{ tab: number; heap: number }> {
  // The workers collect theirs too when memory is short.
  await session.send('Memory.simulatePressureNotification', { level: 'critical' });
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  // Of the test's browsers, the tab with the model is the largest renderer.
  const tab = Math.max(...renderersOf(process.pid).map((pid) => 1024 * (status(pid, 'RssAnon') ?? 0)));
  return { tab, heap: usedSize };
}

test('200 messages in one conversation do not make the tab grow, and none is drawn twice', async ({ page }) => {
  test.setTimeout(300_000);
  await visit(page, 8);
  const session = await page.context().newCDPSession(page);
  const answers = page.locator('.answer');
  const seen: { messages: number; tab: number; heap: number }[] = [];
  for (let turn = 1; turn <= 100; turn++) {
    await say(page, `Tell me of number ${turn}, who was a king of the north and had three sons and a horse.`);
    if (turn === 1) await answers.first().evaluate((view) => view.setAttribute('data-first', ''));
    const messages = 2 * turn;
    const isSeen = (messages >= 50 && messages <= 100) || messages >= 150;
    if (isSeen && turn % 2 === 1) seen.push({ messages, ...(await memoryOf(session)) });
  }
  await expect(page.locator('.message')).toHaveCount(200);
  await expect(page.locator('.divide')).toHaveCount(1);
  await expect(answers.first()).toHaveAttribute('data-first', '');
  await expect(answers.first().getByRole('button')).toHaveText('Copy');
  await expect(page.locator('.message.user').first().getByRole('button')).toHaveCount(0);
  const grown = (of: 'tab' | 'heap') => {
    const values = (last: boolean) => seen.filter(({ messages }) => messages >= 150 === last).map((one) => one[of]);
    // The browser frees memory at times of its own, by 15 MB at once. The smallest values come after that.
    return Math.min(...values(true)) - Math.min(...values(false));
  };
  const words = `tab ${(grown('tab') / MB).toFixed(2)} MB, heap ${(grown('heap') / MB).toFixed(2)} MB`;
  test.info().annotations.push({ type: 'growth over 100 messages', description: words });
  console.log(`growth over 100 messages: ${words}`);
  // The messages and their elements take 3 kB each in the heap.
  expect(grown('heap')).toBeLessThan(1 * MB);
  // Of a tab of 130 MB, it is 5 to 7 MB in the first 200 messages, and -13 MB over 600, because the browser collects the
  // garbage of workers late. 320 kB that are kept for each answer are 16 MB more.
  expect(grown('tab')).toBeLessThan(12 * MB);
});

test('a long conversation that is opened is drawn in many short tasks', async ({ page }) => {
  await visit(page, 8);
  const part =
    '## A heading\n\nA paragraph with **bold** words, `code`, and [a link](https://example.org/).\n\n- one\n- two\n\n' +
    '| a | b |\n|--:|---|\n| 1 | 2 |\n\n```js\nconst a = 1;\n```\n\n';
  const turn = [
    { role: 'user', content: 'A question' },
    { role: 'assistant', content: part.repeat(5) },
  ];
  const data = { version: 1, messages: Array.from({ length: 150 }, () => turn).flat() };
  const chat = { id: 'long', title: 'A long one', model: 'Another', time: 1_700_000_000_000, data };
  await page.evaluate((text) => localStorage.setItem('qsf.chat.long', text), JSON.stringify(chat));
  await page.getByRole('button', { name: 'History' }).click();
  await page.evaluate(() => {
    const added: number[] = [];
    Object.assign(window, { added });
    // It is called once after each task.
    new MutationObserver((records) => {
      const nodes = records.flatMap(({ addedNodes }) => [...addedNodes]).filter((node) => node instanceof Element);
      added.push(nodes.reduce((sum, node) => sum + 1 + node.querySelectorAll('*').length, 0));
    }).observe(document.getElementById('transcript')!, { childList: true, subtree: true });
  });
  await page.getByRole('button', { name: 'A long one', exact: true }).click();
  const headings = page.locator('.answer h3');
  await expect(headings.last()).toBeInViewport();
  await expect(headings).toHaveCount(750, patience);
  await expect(headings.last()).toBeInViewport();
  const added = await page.evaluate(() => (window as unknown as { added: number[] }).added);
  const all = added.reduce((sum, count) => sum + count, 0);
  const share = Math.max(...added) / all;
  console.log(`${added.length} tasks, the largest has ${(100 * share).toFixed(1)} % of the elements`);
  expect(share).toBeLessThan(0.15);
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(page.locator('.welcome')).toBeVisible();
  await expect(page.locator('.message')).toHaveCount(0);
});

test('the rows of a hundred conversations are made once, and those out of view are not laid out', async ({ page }) => {
  await visit(page, 8);
  await page.evaluate(() => {
    for (let i = 0; i < 100; i++) {
      const data = { version: 1, messages: [{ role: 'user', content: `Number ${i} of them` }] };
      const chat = { id: `${i}`, title: `Number ${i}`, model: 'Another', time: 1_700_000_000_000 + i, data };
      localStorage.setItem(`qsf.chat.${i}`, JSON.stringify(chat));
    }
  });
  await page.getByRole('button', { name: 'History' }).click();
  const rows = page.locator('#history-rows li');
  await expect(rows).toHaveCount(100);
  await expect(rows.first()).toContainText('Number 99');
  const laidOut = await rows.evaluateAll(
    (all) => all.filter((row) => row.firstElementChild!.checkVisibility({ contentVisibilityAuto: true })).length,
  );
  expect(laidOut).toBeGreaterThan(0);
  expect(laidOut).toBeLessThan(60);
  await rows.nth(4).evaluate((row) => row.setAttribute('data-first', ''));
  await page.getByLabel('Search conversations').fill('number 95');
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toHaveAttribute('data-first', '');
  await page.getByLabel('Search conversations').fill('');
  await expect(rows).toHaveCount(100);
  await expect(rows.nth(4)).toHaveAttribute('data-first', '');
});
