// Conversations in the demo page: with a model that has a chat template, of a file, an address and the Hub.
import { readFileSync, writeFileSync } from 'node:fs';

import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';

import { Demo, openAt, patience, planned, slider, stopPast } from './demo.js';
import { convertForChat } from './native.js';
import { RICH, openRich } from './rich-chat.js';

const TEMPLATE =
  '{% for m in messages %}{{ m.role ~ ": " ~ m.content ~ "\\n" }}{% endfor %}' +
  '{% if add_generation_prompt %}Once upon a time{% endif %}';

let demo: Demo;
let model: Buffer;

test.beforeAll(async () => {
  demo = await Demo.start();
  model = await convertForChat(TEMPLATE);
  writeFileSync(`${demo.folder}/models/chat.gguf`, model);
});
test.afterAll(async () => {
  await demo.stop();
});

const transcript = (page: Page) => page.getByRole('log', { name: 'The conversation' });
const message = (page: Page) => page.getByLabel('Message', { exact: true });
const send = (page: Page) => page.locator('#send');
const answers = (page: Page) => transcript(page).locator('.answer');
const questions = (page: Page) => transcript(page).locator('.bubble');

/** Opens the page with the model, whose answers have at most so many tokens. */
async function visit(page: Page, tokens: number): Promise<readonly string[]> {
  const complaints = await demo.visit(page);
  await openAt(page, `${demo.address}models/chat.gguf`);
  await expect(message(page)).toBeVisible(patience);
  await planned(page);
  await page
    .locator('#maxTokens')
    .evaluate((field, length) => ((field as HTMLInputElement).value = length), `${tokens}`);
  return complaints;
}

/** Waits for the end of an answer. Gives the text of the last one. */
async function answered(page: Page): Promise<string> {
  await expect(answers(page).last().getByRole('button', { name: 'Retry' })).toBeVisible(patience);
  return (await answers(page).last().locator('.prose').last().textContent()) ?? '';
}

async function ask(page: Page, text: string): Promise<string> {
  await message(page).fill(text);
  await page.keyboard.press('Enter');
  await expect(questions(page).last()).toHaveText(text);
  return answered(page);
}

test('a conversation is answered, branched, retried, edited, stopped, and there after a reload', async ({ page }) => {
  const complaints = await visit(page, 24);
  await expect(page.locator('#form')).toBeHidden();
  const first = await ask(page, 'Tell me of a king.');
  expect(first.length).toBeGreaterThan(10);
  await ask(page, 'And of a fox.');
  await expect(answers(page)).toHaveCount(2);
  await expect(answers(page).last()).toContainText(
    /24 tokens · [\d.]+ tokens\/s · first after .* · at the length limit/,
  );
  await expect(transcript(page).getByRole('button', { name: 'Retry' })).toHaveCount(1);

  await answers(page).first().getByRole('button', { name: 'Branch' }).click();
  await expect(questions(page)).toHaveText(['Tell me of a king.']);
  await expect(page.locator('#chat-note')).toHaveText('This is a copy.');
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('listitem').filter({ hasText: '2 messages' }).getByRole('button').first().click();
  await expect(questions(page)).toHaveText(['Tell me of a king.', 'And of a fox.']);
  await expect(page.locator('#chat-note')).toBeEmpty();

  await answers(page).last().getByRole('button', { name: 'Retry' }).click();
  await expect(questions(page)).toHaveText(['Tell me of a king.', 'And of a fox.']);
  await answered(page);
  await expect(answers(page)).toHaveCount(2);

  await transcript(page).getByRole('button', { name: 'Edit' }).first().click();
  await page.getByLabel('Your message').fill('Tell me of an owl.');
  await page.getByRole('button', { name: 'Send again' }).click();
  await expect(questions(page)).toHaveText(['Tell me of an owl.']);
  await answered(page);

  await page.locator('#maxTokens').evaluate((field) => ((field as HTMLInputElement).value = '400'));
  await message(page).fill('A long story.');
  const shown = (await transcript(page).locator('.prose').allTextContents()).join('').length;
  const isStopped = stopPast(page, '.prose', shown);
  await page.keyboard.press('Enter');
  await isStopped;
  const kept = await answered(page);
  await expect(answers(page).last()).toContainText('stopped');
  await expect(send(page)).toHaveText('Send');
  expect(complaints).toEqual([]);

  await page.reload();
  await planned(page);
  await openAt(page, `${demo.address}models/chat.gguf`);
  await page.getByRole('button', { name: 'History' }).click(patience);
  await page.getByRole('button', { name: 'Tell me of an owl.', exact: true }).click();
  await expect(questions(page)).toHaveText(['Tell me of an owl.', 'A long story.']);
  await expect(answers(page).last().locator('.prose')).toHaveText(kept);
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(questions(page)).toHaveCount(0);

  await page.reload();
  await expect(page.locator('#last')).toContainText('chat.gguf, which this browser keeps', patience);
  await page.getByRole('button', { name: 'Go on', exact: true }).click();
  await expect(questions(page)).toHaveText(['Tell me of an owl.', 'A long story.'], patience);
  await expect(answers(page).last().locator('.prose')).toHaveText(kept);
  await expect(page.locator('#last')).toBeHidden();
});

test('a budget opens the model anew, and the conversation goes on', async ({ page }) => {
  await visit(page, 12);
  await ask(page, 'Tell me of a king.');
  await page.getByRole('slider', { name: 'Memory budget' }).focus();
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('status')).toContainText('Planning', patience);
  await planned(page);
  await ask(page, 'And of a fox.');
  await expect(questions(page)).toHaveText(['Tell me of a king.', 'And of a fox.']);
});

test('the parts of an answer are shown, and nothing of a text becomes an element of its own', async ({ page }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const complaints = await visit(page, 12);
  await openRich(page);
  await expect(questions(page)).toHaveText(['A table and <b>some</b> code']);
  const answer = answers(page);
  await expect(answer).toHaveCount(1);
  await expect(answer.locator('.thoughts')).not.toHaveAttribute('open');
  await expect(answer.locator('.call')).toHaveText('calculator({"expression":"6*7"})→42');
  await expect(answer.getByRole('heading', { name: 'Title', level: 3 })).toBeVisible();
  await expect(answer.getByRole('listitem')).toHaveText(['one', 'two']);
  await expect(answer.getByRole('cell', { name: '1' })).toHaveCSS('text-align', 'right');
  await expect(answer.locator('img')).toHaveCount(0);
  await expect(answer).toContainText('<img src="/none.png"');
  await expect(answer.getByRole('link')).toHaveCount(2);
  await expect(answer.getByRole('link', { name: 'good' })).toHaveAttribute('rel', 'noopener noreferrer');
  await answer.locator('.code').getByRole('button', { name: 'Copy' }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('const a = 1 < 2;\n');
  await answer.locator('.thoughts summary').click();
  await expect(answer.locator('.thoughts strong')).toHaveText('tables');
  expect(complaints).toEqual([]);
});

test('conversations are found, exported and removed, and a file of another kind is refused', async ({ page }) => {
  await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  await openRich(page);
  await page.getByRole('button', { name: 'History' }).click();
  const history = page.getByRole('dialog', { name: 'Conversations' });
  const rows = history.getByRole('listitem');
  await expect(rows).toHaveCount(2);
  const search = history.getByLabel('Search conversations');
  const place = await search.boundingBox();
  await search.fill('CONST A');
  await expect(rows).toHaveCount(1);
  expect(await search.boundingBox()).toEqual(place);

  const saved = async (name: string | RegExp) => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      history.getByRole('button', { name }).click(),
    ]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
  };
  const markdown = await saved(/^Export as Markdown/);
  expect(markdown.name).toBe('A-table-and-some-code.md');
  expect(markdown.text).toMatch(
    /^# A table and some code\n\n## You\n[^]*## Result of calculator\n\n42\n\n## Another\n\n# Title/,
  );
  const all = JSON.parse((await saved('Export all as JSON')).text) as typeof RICH;
  expect(all.chats.map(({ title }) => title).sort()).toEqual(['A table and some code', 'Tell me of a king.']);
  expect(all.chats.find(({ id }) => id === 'rich')).toEqual(RICH.chats[0]);

  await history.getByRole('button', { name: 'Remove A table and some code' }).click();
  await history.getByLabel('Search conversations').fill('');
  await expect(rows).toHaveCount(1);
  const text = { name: markdown.name, mimeType: 'text/markdown', buffer: Buffer.from(markdown.text) };
  await page.getByLabel('Import').setInputFiles(text);
  await expect(rows).toHaveCount(2);
  expect(await saved('Export as Markdown: A table and some code')).toEqual(markdown);
  await history.getByRole('button', { name: 'Remove A table and some code' }).click();
  await expect(rows).toHaveCount(1);
  const wrong = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('{"version":1,"chats":[{}]}') };
  await page.getByLabel('Import').setInputFiles(wrong);
  await expect(page.locator('#history-text')).toHaveText('Conversation 1 of the file is damaged.');
  await expect(rows).toHaveCount(1);
});

test('a small window shows the end of an answer, with its buttons', async ({ page }) => {
  await page.setViewportSize({ width: 640, height: 420 });
  await visit(page, 40);
  for (const text of ['Tell me of a king.', 'Go on.']) {
    await ask(page, text);
    await expect(send(page)).toHaveText('Send');
    const hidden = () => transcript(page).evaluate((e) => e.scrollHeight - e.clientHeight - e.scrollTop);
    await expect.poll(hidden).toBeLessThan(2);
  }
});

test('a conversation that is removed while it is answered stays away', async ({ page }) => {
  await visit(page, 400);
  await ask(page, 'Tell me of a king.');
  await page.locator('#temperature').evaluate((field) => ((field as HTMLInputElement).value = '1.5'));
  await message(page).fill('And of a fox.');
  await page.keyboard.press('Enter');
  await expect(send(page)).toHaveText('Stop');
  await page.getByRole('button', { name: 'History' }).click();
  const history = page.getByRole('dialog', { name: 'Conversations' });
  await history.getByRole('button', { name: 'Remove Tell me of a king.' }).click();
  await expect(send(page)).toHaveText('Send', patience);
  await page.keyboard.press('Escape');
  await expect(questions(page)).toHaveCount(0);
  await page.getByRole('button', { name: 'History' }).click();
  await expect(history).toContainText('None yet');
  await expect(history.getByRole('button', { name: 'Export all as JSON' })).toBeHidden();
});

test('an answer under way is kept when the page or the conversation is left', async ({ page }) => {
  const texts = () =>
    page.evaluate(() =>
      Object.entries(localStorage)
        .filter(([key]) => key.startsWith('qsf.chat.'))
        .map(([, value]) => JSON.parse(String(value)) as { data: { messages: { content: string }[] } })
        .map(({ data }) => data.messages.map(({ content }) => content.length > 0)),
    );
  const begin = async (text: string) => {
    await message(page).fill(text);
    await page.keyboard.press('Enter');
    await expect(answers(page).last().locator('.prose')).toHaveText(/.{9}/, patience);
  };
  await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  await page.locator('#maxTokens').evaluate((field) => ((field as HTMLInputElement).value = '400'));
  await transcript(page).getByRole('button', { name: 'Edit' }).click();
  // An input method has its own Escape.
  const composing = { key: 'Escape', isComposing: true, bubbles: true };
  await page.getByLabel('Your message').dispatchEvent('keydown', composing);
  await begin('And of a fox.');
  // An answer is under way, so this does nothing.
  await page.getByLabel('Your message').press('Control+Enter');
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(questions(page)).toHaveCount(0, patience);
  expect(await texts()).toEqual([[true, true, true, true]]);

  await begin('Tell me of an owl.');
  await page.reload();
  expect((await texts()).sort((a, b) => a.length - b.length)).toEqual([
    [true, true],
    [true, true, true, true],
  ]);
});

test('a conversation opens in a page that came over http', async ({ page }) => {
  // What browsers take from such pages.
  await page.addInitScript(() => {
    Object.defineProperty(crypto, 'randomUUID', { value: undefined });
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
  });
  const complaints = await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  await answers(page).getByRole('button', { name: 'Copy' }).click();
  await expect(answers(page).getByRole('button', { name: 'Not allowed' })).toBeVisible();
  expect(complaints).toEqual([]);
});

test('a notice of a failure goes with its conversation, and the text of it comes back', async ({ page }) => {
  await visit(page, 8);
  const long = 'A long text. '.repeat(400).trim();
  await message(page).evaluate((element, text) => {
    const field = element as HTMLTextAreaElement;
    field.value = text;
    field.form!.requestSubmit();
    field.value = 'The next one.'; // before the failure
  }, long);
  await expect(page.getByRole('alert')).toContainText('The text no longer fits into the context', patience);
  await expect(message(page)).toHaveValue(`${long}\nThe next one.`);
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(page.getByRole('alert')).toBeHidden();
});

test('a double click sends, and does not stop what it sent', async ({ page }) => {
  await visit(page, 24);
  await message(page).fill('Tell me of a king.');
  await send(page).dblclick();
  expect((await answered(page)).length).toBeGreaterThan(10);
  await expect(answers(page)).not.toContainText('stopped');
  await expect(message(page)).toHaveValue('');
});

test('an import for which the browser has no room says so, and keeps what is there', async ({ page }) => {
  await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  await page.evaluate(() => {
    const set = (key: string, value: string) => localStorage.setItem(key, value);
    try {
      for (let i = 0; ; i++) set(`full${i}`, 'x'.repeat(1_000_000));
    } catch {
      set('rest', '');
    }
  });
  await page.getByRole('button', { name: 'History' }).click();
  const [rich] = RICH.chats;
  const large = { ...rich, id: 'large', title: 'x'.repeat(1_200_000) };
  const buffer = Buffer.from(JSON.stringify({ version: 1, chats: [rich, large] }));
  await page.getByLabel('Import').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer });
  await expect(page.locator('#history-text')).toHaveText(/^Not all was imported\. The browser has no room/);
  const rows = page.getByRole('dialog', { name: 'Conversations' }).getByRole('listitem');
  await expect(rows).toHaveCount(2);
});

test('a browser that refuses storage is not said to keep anything', async ({ page }) => {
  await page.addInitScript(() => {
    const refuse = () => {
      throw new DOMException('refused', 'SecurityError');
    };
    Object.defineProperty(globalThis, 'localStorage', { get: refuse });
    Object.defineProperty(globalThis, 'indexedDB', { get: refuse });
    navigator.storage.getDirectory = () => Promise.reject(new DOMException('refused', 'SecurityError'));
  });
  await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  await expect(page.getByRole('alert')).toContainText('This conversation is not kept');
  await page.getByRole('button', { name: 'History' }).click();
  await expect(page.locator('#history-text')).toHaveText(/^None is kept\. The browser has no room for it/);
  await page.goto(`${demo.address}retrieval.html`);
  await expect(page.locator('#files-status')).toContainText('This browser keeps no files');
  await expect(page.locator('main')).not.toContainText('stay in this browser');
});

test('the focus is never lost in a conversation', async ({ page }) => {
  await visit(page, 8);
  const press = async (button: Locator) => {
    await button.focus();
    await page.keyboard.press('Enter');
  };
  await press(page.getByRole('button', { name: 'Write a haiku about rain.' }));
  await expect(message(page)).toBeFocused();
  await answered(page);
  await press(transcript(page).getByRole('button', { name: 'Retry' }));
  await expect(message(page)).toBeFocused();
  await answered(page);
  await press(transcript(page).getByRole('button', { name: 'Edit' }));
  await page.keyboard.type('x');
  await page.keyboard.press('Control+Enter');
  await expect(message(page)).toBeFocused();
  await answered(page);
  await press(page.getByRole('button', { name: 'History' }));
  await press(page.getByRole('button', { name: /^Remove Write/ }));
  await expect(page.locator('#history-text')).toContainText('None yet');
  await expect(page.getByLabel('Import')).toBeFocused();
});

test('a kept model that another tab has open is not removed, and the picker says why', async ({ page, context }) => {
  await visit(page, 8);
  const second = await context.newPage();
  await visit(second, 8);
  await second.locator('#model-button').click();
  const picker = second.getByRole('dialog', { name: 'Choose a model' });
  await picker.getByRole('button', { name: 'Remove chat.gguf' }).click();
  await expect(picker.getByRole('alert')).toContainText('open here or in another tab', patience);
  await second.keyboard.press('Escape');
  await ask(second, 'Tell me of a king.');
  await ask(page, 'Tell me of a queen.');
});

test('two tabs keep what each of them says, also in one conversation', async ({ page, context }) => {
  await visit(page, 8);
  await ask(page, 'Tell me of a king.');
  const second = await context.newPage();
  await visit(second, 8);
  const history = second.getByRole('dialog', { name: 'Conversations' });
  const rows = history.getByRole('listitem');
  await second.getByRole('button', { name: 'History' }).click();
  await history.getByRole('button', { name: 'Tell me of a king.', exact: true }).click();
  await expect(questions(second)).toHaveText('Tell me of a king.');
  await ask(second, 'And of his sons?');
  await ask(page, 'And of his horse?');
  await ask(second, 'Did they live?');

  await second.getByRole('button', { name: 'History' }).click();
  await expect(rows).toHaveCount(2);
  const said = await second.evaluate(() =>
    Object.entries(localStorage)
      .filter(([key]) => key.startsWith('qsf.chat.'))
      .map(([, value]) => JSON.parse(String(value)) as { data: { messages: { role: string; content: string }[] } })
      .map(({ data }) => data.messages.filter(({ role }) => role === 'user').map(({ content }) => content)),
  );
  expect(said.sort((a, b) => a.length - b.length)).toEqual([
    ['Tell me of a king.', 'And of his horse?'],
    ['Tell me of a king.', 'And of his sons?', 'Did they live?'],
  ]);
  // The list follows the other tab.
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await ask(page, 'Tell me of a queen.');
  await expect(rows).toHaveCount(3);
});

test('the line about an opening ends with it, also after a change of the budget', async ({ page }) => {
  await visit(page, 4);
  const opening = page.locator('#opening');
  await expect(opening).toBeHidden(patience);
  await slider(page).focus();
  for (let i = 0; i < 40; i++) await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('status')).toContainText('are read again for each token', patience);
  await ask(page, 'Tell me of a king.');
  await expect(opening).toBeHidden(patience);
});

test('a suggested model comes from the Hub, is kept, and is removed', async ({ page }) => {
  await demo.visit(page);
  const headers = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': '*', ETag: '"1"' };
  const file =
    'https://huggingface.co/bartowski/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct-Q8_0.gguf';
  let sent = 0;
  await page.context().route('https://huggingface.co/**', (route) => {
    if (route.request().url() !== file) return route.fulfill({ status: 404, headers });
    const [, from, to] = /bytes=(\d+)-(\d*)/.exec(route.request().headers()['range'] ?? '') ?? [];
    if (from === undefined) return route.fulfill({ status: 200, headers, body: model });
    const end = Math.min(to ? Number(to) : Infinity, model.length - 1);
    const range = `bytes ${from}-${end}/${model.length}`;
    const body = model.subarray(Number(from), end + 1);
    sent += body.length;
    return route.fulfill({ status: 206, headers: { ...headers, 'Content-Range': range }, body });
  });
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Open SmolLM2 135M' }).click();
  await expect(message(page)).toBeVisible(patience);
  await expect.poll(() => sent, patience).toBeGreaterThanOrEqual(model.length);
  await expect(page.locator('#model-title')).toHaveText('SmolLM2 135M');
  await expect(page.locator('#budget-text')).not.toHaveText('4 MiB');

  await page.locator('#model-button').click();
  const kept = page.locator('#kept').getByRole('listitem');
  await expect(kept).toHaveCount(2);
  await expect(page.locator('#suggested')).toContainText('kept here');
  await kept.filter({ hasText: 'SmolLM2 135M' }).getByRole('button', { name: 'Remove' }).click();
  await expect(kept).toHaveCount(1);
  await kept.getByRole('button', { name: 'Open Stories' }).click();
  await expect(page.locator('#form')).toBeVisible(patience);
  await expect(page.locator('#budget-text')).toHaveText('64 MiB');
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing in a conversation, and a small window is enough (${colorScheme})`, async ({ page }) => {
    const expectClean = async (state: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(
        violations.map(({ id, nodes }) => `${state}: ${id} at ${nodes.map((n) => n.target.join(' ')).join()}`),
      ).toEqual([]);
    };
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 320, height: 640 });
    await visit(page, 12);
    await expectClean('before');
    for (const idea of await page.locator('.welcome button').all()) await expect(idea).toBeInViewport({ ratio: 1 });
    await ask(page, 'Tell me of a king.');
    for (const part of [answers(page).last().locator('.prose'), message(page), send(page)])
      await expect(part).toBeInViewport({ ratio: 1 });
    await openRich(page);
    await page.locator('.thoughts summary').click();
    await page.locator('#options summary').click();
    await expectClean('an answer with all parts');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.getByRole('button', { name: 'History' }).click();
    await expectClean('history');
    await page.keyboard.press('Escape');
    await page.locator('#model-button').click();
    await expectClean('picker');
  });
}
