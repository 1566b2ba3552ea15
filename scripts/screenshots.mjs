#!/usr/bin/env node
/* global document, getComputedStyle, navigator, requestAnimationFrame */
// Takes pictures of the states of the demo in four sizes of window, light and dark, into build/screenshots: one sheet for
// each state. Words after the command choose the parts: story, chat, history, retrieval, documents, offline. The pictures
// are for looking at a change, and are not committed. Needs the WebAssembly modules, qsf-convert and Chromium.
import { Buffer } from 'node:buffer';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { openAt, openChat, planned, withDemo } from './lib/demo.mjs';
import { Stop, main, root } from './lib/process.mjs';

const folder = join(root, 'build', 'screenshots');

const sizes = [
  [390, 844],
  [768, 1024],
  [1280, 800],
  [1920, 1080],
];

/** The part of its size at which a window of so many pixels is shown on the sheet. */
const scaleOf = (width) => (width < 1000 ? 0.6 : 0.44);

const linked = 'https://example.org/a/model-of-somebody-else-Q4_K_M.gguf';

/** Bytes for each second from the slow server, so that a download lasts longer than its pictures take. */
const SLOW = 250_000;

/** A conversation with all that answers may have. */
const RICH = {
  version: 1,
  messages: [
    { role: 'user', content: 'How many minutes are in 17 days? Show me in code, and compare three ways.' },
    {
      ...{
        role: 'assistant',
        content: '',
        reasoning_content: 'The user wants **17 × 24 × 60**. I ask the calculator.',
      },
      tool_calls: [
        { id: 'abcdefghi', type: 'function', function: { name: 'calculator', arguments: { expression: '17*24*60' } } },
      ],
    },
    { role: 'tool', name: 'calculator', tool_call_id: 'abcdefghi', content: '24480' },
    {
      role: 'assistant',
      content: [
        '# Minutes\n\nThere are **24,480** minutes in 17 days. Three ways to know, with `code` in a line:',
        '1. multiply\n2. count\n   - days\n   - hours\n3. ask',
        '| Way | Steps | Result |\n|:--|--:|:-:|\n| multiply | 2 | 24480 |\n| count | 24480 | 24480 |\n| ask a very patient friend who counts aloud | 1 | about 24000 |',
        '```js\n// A line that is longer than any phone is wide, so that the block scrolls and not the page around it.\nconst minutes = (days) => days * 24 * 60;\nconsole.log(minutes(17));\n```',
        '> A quotation of two lines,\n> for its bar.\n\nSee [a link](https://example.org/) and https://example.org/a/very/long/address/that/has/no/spaces/and/never/ends/anywhere.',
      ].join('\n\n'),
    },
    {
      role: 'user',
      content: 'Thanks! And with anunbelievablylongwordthathasnospacesatallandthereforemustbebrokensomewhereornot?',
    },
    { role: 'assistant', content: 'The same.' },
  ],
};
const FULL = {
  version: 1,
  messages: RICH.messages.slice(4),
  dropped: [
    { role: 'user', content: 'An old question.' },
    { role: 'assistant', content: 'An old answer.' },
  ],
};
const chat = (id, title, data, day) => ({ id, title, model: 'Qwen3 0.6B', time: Date.UTC(2026, 10, day), data });
const CHATS = [
  chat('rich', 'How many minutes are in 17 days? Show me in code, and compa…', RICH, 20),
  chat('full', 'An old question', FULL, 19),
  ...Array.from({ length: 12 }, (_, i) => chat(`c${i}`, `Conversation ${i + 1} of many`, FULL, 18 - i)),
];
const jsonFile = (data) => ({
  ...{ name: 'a.json', mimeType: 'application/json' },
  buffer: Buffer.from(typeof data === 'string' ? data : JSON.stringify(data)),
});

const seen = [];

/** Lays out elements out of view too, since a picture of a whole page shows them. */
function showAll() {
  for (const element of document.querySelectorAll('*')) {
    if (getComputedStyle(element).contentVisibility === 'auto') element.style.contentVisibility = 'visible';
  }
}

/** Takes the pictures of a state. With `whole`, they have the whole height of their pages. */
async function look(page, name, { whole = false } = {}) {
  const pictures = [];
  if (whole) await page.evaluate(showAll);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of sizes) {
      await page.setViewportSize({ width, height });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const needed = await page.evaluate(() => document.documentElement.scrollWidth);
      if (needed > width) console.log(`${name}: ${needed} pixels in a window of ${width}`);
      pictures.push({ width, bytes: await page.screenshot({ fullPage: whole, animations: 'disabled' }) });
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  seen.push(name);
  const sheet = await page.context().newPage();
  const image = ({ width, bytes }) =>
    `<img width="${width * scaleOf(width)}" src="data:image/png;base64,${bytes.toString('base64')}" alt="">`;
  const narrow = pictures.filter(({ width }) => width < 1000);
  const wide = pictures.filter(({ width }) => width >= 1000);
  const rows = [narrow, wide.slice(0, wide.length / 2), wide.slice(wide.length / 2)];
  const style = 'body{margin:8px;background:#888}div{display:flex;gap:8px;margin-bottom:8px;align-items:start}';
  await sheet.setViewportSize({ width: 1480, height: 800 });
  await sheet.setContent(
    `<style>${style}</style>${rows.map((row) => `<div>${row.map(image).join('')}</div>`).join('')}`,
  );
  await sheet.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  await sheet.close();
  console.log(join(folder, `${name}.png`));
}

/** Serves a file slowly, by ranges. Returns its address and a function that ends it. */
async function serveSlowly(file) {
  const bytes = readFileSync(file);
  const server = createServer(async (request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Allow-Headers', '*');
    response.setHeader('Access-Control-Expose-Headers', 'Content-Range, ETag');
    if (request.method === 'OPTIONS') return void response.writeHead(204).end();
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const part = bytes.subarray(Number(from), to === '' ? bytes.length : Number(to) + 1);
    const range = `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}`;
    response.writeHead(206, { 'Content-Range': range, 'Content-Length': part.length, ETag: '"1"' });
    for (let at = 0; at < part.length && !response.destroyed; at += SLOW / 20) {
      response.write(part.subarray(at, at + SLOW / 20));
      await sleep(50);
    }
    response.end();
  });
  await new Promise((done) => server.listen(0, 'localhost', done));
  const stop = () => (server.closeAllConnections(), server.close());
  return { address: `http://localhost:${server.address().port}/slow-model.qsf`, stop };
}

const set = (page, id, value) => page.locator(`#${id}`).evaluate((input, to) => (input.value = to), value);
const button = (page, name) => page.getByRole('button', { name, exact: true });
const answered = (page) => button(page.locator('#transcript'), 'Retry').waitFor({ timeout: 120_000 });

async function story(page, { address, file }) {
  await page.goto(address);
  await planned(page);
  await look(page, 'start');
  await look(page, 'start-whole', { whole: true });
  await set(page, 'maxTokens', '480');
  await page.locator('#budget').focus();
  await button(page, 'Write').click();
  await page.locator('#live').filter({ hasText: 'tokens/s' }).waitFor({ timeout: 60_000 });
  await look(page, 'story-writing');
  await page.keyboard.press('Escape');
  await page.locator('#ending-text').filter({ hasText: /./ }).waitFor();
  await look(page, 'story-stopped');
  await page.locator('#options summary').click();
  await page.locator('#fold').evaluate((fold) => fold.click());
  await look(page, 'story-unfolded', { whole: true });
  await page.locator('#budget').focus();
  await page.keyboard.press('Home');
  await page.getByRole('alert').waitFor();
  await look(page, 'budget-too-small');
  await button(page, 'Use the smallest that works').click();
  await planned(page);
  await page.locator('#model-button').click();
  await page.locator('#kept li').first().waitFor();
  await look(page, 'picker');
  await button(page, 'Open').click();
  await page.getByRole('alert').waitFor();
  await look(page, 'picker-error');
  await page.keyboard.press('Escape');
  await openAt(page, `${address}favicon.svg`);
  await page.getByRole('alert').waitFor();
  await look(page, 'no-model');
  const slow = await serveSlowly(file);
  try {
    await openAt(page, slow.address);
    await page.locator('#opening-text').filter({ hasText: /\/s/ }).waitFor({ timeout: 60_000 });
    await look(page, 'downloading');
  } finally {
    slow.stop();
  }
  await page.goto('about:blank');
  await page.goto(`${address}#prompt=Once&model=${encodeURIComponent(linked)}`);
  await page.locator('#linked').waitFor();
  await look(page, 'linked');
}

async function talk(page, { address, model }) {
  await page.goto(address);
  await planned(page);
  await openChat(page, model);
  await look(page, 'chat-start');
  await set(page, 'maxTokens', '400');
  const field = page.getByLabel('Message', { exact: true });
  await field.fill('Tell me of the king and his daughter. There was once a king who');
  await page.keyboard.press('Enter');
  await page
    .locator('.answer .prose')
    .filter({ hasText: /\w+ \w+/ })
    .waitFor({ timeout: 60_000 });
  await look(page, 'chat-writing');
  await page.keyboard.press('Escape');
  await answered(page);
  await look(page, 'chat-stopped');
  await button(page, 'Edit').click();
  await look(page, 'chat-edit');
  await button(page.locator('#transcript'), 'Cancel').click();
  await page.locator('#options summary').click();
  await page.locator('#fold').evaluate((fold) => fold.click());
  await look(page, 'chat-unfolded', { whole: true });
  await page.locator('#options summary').click();
  await page.locator('#fold').evaluate((fold) => fold.click());
  await field.fill('once '.repeat(3000));
  await look(page, 'chat-long-message');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor({ timeout: 60_000 });
  await look(page, 'chat-context-full');
}

async function history(page, { address, model }) {
  await page.goto(address);
  await planned(page);
  await openChat(page, model);
  await page.locator('#chat-list').click();
  await look(page, 'history-empty');
  await page.getByLabel('Import JSON').setInputFiles(jsonFile('{'));
  await look(page, 'history-broken-import');
  await page.getByLabel('Import JSON').setInputFiles(jsonFile({ version: 1, chats: CHATS }));
  await look(page, 'history');
  await page.getByLabel('Search conversations').fill('minutes');
  await look(page, 'history-search');
  await page.locator('.row-title').first().click();
  await page.locator('.transcript').evaluate((box) => (box.scrollTop = 0));
  await look(page, 'chat-rich');
  await page.locator('.thoughts summary').click();
  await page.locator('.transcript').evaluate((box) => (box.scrollTop = 0));
  await look(page, 'chat-thoughts');
  await page.locator('.transcript').evaluate((box) => (box.scrollTop = 400));
  await look(page, 'chat-rich-below');
  await button(page, 'Branch').first().click();
  await look(page, 'chat-branch');
  await page.locator('#chat-list').click();
  await button(page, 'An old question').click();
  await look(page, 'chat-dropped');
}

async function retrieval(page, { address, model }) {
  await page.goto(`${address}retrieval.html`);
  await page.locator('#files-status').filter({ hasText: /./ }).waitFor();
  await look(page, 'retrieval-start');
  const text = (name, words) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(words) });
  const owls = 'Owls sleep by day. They hunt at night, and hear a mouse under the snow.\n\n'.repeat(3);
  await page
    .locator('#add-files')
    .setInputFiles([
      text('king.txt', 'The king of the north drinks green tea in the morning.'),
      text('a-file-with-a-very-long-name-that-nobody-would-type-twice-in-a-life.md', owls),
      { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47]) },
    ]);
  await page.getByRole('alert').waitFor();
  await look(page, 'retrieval-refused-file');
  await page.locator('#choose-embedding').click();
  await look(page, 'retrieval-picker');
  await page.getByRole('button', { name: 'Open Stories' }).first().click();
  await page.locator('#files-status').filter({ hasText: 'passages.' }).waitFor({ timeout: 60_000 });
  await page.locator('#choose-answering').click();
  const dialog = page.getByRole('dialog', { name: 'Choose a model that answers' });
  await dialog.getByLabel('Name on the Hub, or address').fill(model);
  await button(dialog, 'Open').click();
  await page.locator('#answering-text').filter({ hasText: 'of memory' }).waitFor({ timeout: 60_000 });
  await page.getByLabel('Question').fill('What does the king of the north drink in the morning?');
  await page.keyboard.press('Enter');
  await page.locator('#answer .prose').filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
  await page.keyboard.press('Escape');
  await page.locator('#ask-button').filter({ hasText: 'Ask' }).waitFor({ timeout: 60_000 });
  await look(page, 'retrieval-answer', { whole: true });
}

async function documents(page, { address }) {
  await page.goto(`${address}examples.html`);
  await page.getByRole('button', { name: 'Run' }).first().click();
  await page.locator('[data-state=done]').first().waitFor({ timeout: 60_000 });
  await look(page, 'examples');
}

async function offline(page, { address, stopServer }) {
  await page.goto(address);
  await planned(page);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForTimeout(1000);
  await stopServer();
  await page.goto(address);
  await planned(page);
  await look(page, 'offline');
  await openAt(page, `${address}models/another.qsf`);
  await page.getByRole('alert').waitFor({ timeout: 120_000 });
  await look(page, 'offline-model');
}

const parts = { story, chat: talk, history, retrieval, documents, offline };

await main(async () => {
  const words = process.argv.slice(2);
  const unknown = words.find((word) => !(word in parts));
  if (unknown !== undefined) throw new Stop(`${unknown} is none of ${Object.keys(parts).join(', ')}.`);
  mkdirSync(folder, { recursive: true });
  await withDemo(async (demo) => {
    for (const [name, visit] of Object.entries(parts)) {
      if (words.length > 0 && !words.includes(name)) continue;
      const context = await demo.browser.newContext({ viewport: { width: 1280, height: 800 } });
      await visit(await context.newPage(), demo);
      await context.close();
    }
  });
  writeFileSync(join(folder, 'states.txt'), seen.join('\n') + '\n');
});
