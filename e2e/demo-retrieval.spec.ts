// The demo's search of the visitor's files: added, found, kept, answered from, removed.
import { writeFileSync } from 'node:fs';

import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { Demo, patience } from './demo.js';
import { convertForChat } from './native.js';

const TEMPLATE = '{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %} Once{% endif %}';
const KING = 'The king of the north drinks green tea in the morning.';
const SEA = 'The sea is wide & <b>cold</b> in winter.';

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
  writeFileSync(`${demo.folder}/models/chat.gguf`, await convertForChat(TEMPLATE));
});
test.afterAll(async () => {
  await demo.stop();
});

const files = (page: Page) => page.locator('#documents').getByRole('listitem');
const status = (page: Page) => page.locator('#files-status');
const hits = (page: Page) => page.locator('#hits > li');
const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const FILES = [
  file('king.txt', KING),
  file('sea.md', SEA),
  file(
    'page.html',
    '<title>No</title><style>b{}</style><h1>Owls</h1><p>Owls sleep<br>by day.</p><script>document.title = 1</script>',
  ),
  file('data.json', '{"cities":[{"name":"Paris"}]}'),
];

/** Opens the page, and returns its complaints. */
async function visit(page: Page): Promise<readonly string[]> {
  const complaints = demo.complaintsOf(page);
  await page.goto(`${demo.address}retrieval.html`);
  await expect(status(page)).not.toBeEmpty();
  return complaints;
}

const add = (page: Page, ...all: typeof FILES) => page.locator('#add-files').setInputFiles(all);

async function chooseStories(page: Page): Promise<void> {
  await page.locator('#choose-embedding').click();
  await page
    .getByRole('dialog', { name: 'Choose an embedding model' })
    .getByRole('button', { name: 'Open Stories' })
    .first()
    .click();
  await expect(page.locator('#embedding-text')).toContainText('of memory', patience);
}

async function ask(page: Page, question: string): Promise<void> {
  await page.getByLabel('Question').fill(question);
  await page.keyboard.press('Enter');
  await expect(page.locator('#ask-button')).toHaveText('Ask', patience);
}

test('files are read, found by questions, there after a reload, and removed', async ({ page }) => {
  const complaints = await visit(page);
  await add(page, ...FILES, { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47]) });
  const notice = page.getByRole('alert');
  await expect(notice).toContainText('a.png is a picture. Text, Markdown, HTML and JSON can be read');
  await expect(notice).toBeFocused();
  await expect(files(page)).toHaveCount(4);
  await expect(status(page)).toContainText('4 files, and no model');

  await page.getByLabel('Question').fill(KING);
  await page.keyboard.press('Enter');
  await expect(notice).toContainText('No model makes vectors yet');
  await chooseStories(page);
  await expect(status(page)).toHaveText('4 files, 4 passages.', patience);
  await ask(page, KING);
  await expect(hits(page)).toHaveCount(4);
  await expect(hits(page).first()).toContainText('[1] king.txtlikeness 1.00');
  await expect(hits(page).first().locator('p')).toHaveText(KING);
  await ask(page, 'cities[0].name: Paris');
  await expect(hits(page).first()).toContainText('data.json');
  await ask(page, SEA);
  await expect(hits(page).first().locator('p')).toHaveText(SEA);
  await ask(page, 'Owls\n\nOwls sleep\n\nby day.');
  await expect(hits(page).first().locator('p')).toHaveText('Owls\n\nOwls sleep\n\nby day.');
  await expect(hits(page).first()).toContainText('likeness 1.00');

  await page.reload();
  await expect(status(page)).toHaveText('4 files, 4 passages.', patience);
  await expect(page.locator('#embedding-name')).toHaveText('Stories');
  await ask(page, KING);
  await expect(hits(page).first()).toContainText('[1] king.txtlikeness 1.00');

  await add(page, file('king.txt', 'The queen.'));
  await expect(status(page)).toHaveText('4 files, 4 passages.', patience);
  await page.getByRole('button', { name: 'Remove sea.md' }).click();
  await expect(files(page)).toHaveCount(3);
  await ask(page, KING);
  await expect(page.locator('#hits')).not.toContainText(KING);
  expect(complaints).toEqual([]);
});

test('the rows of files are made once, and a large page is read', async ({ page }) => {
  const complaints = await visit(page);
  await add(page, ...FILES);
  await files(page)
    .first()
    .evaluate((row) => row.setAttribute('data-first', ''));
  await chooseStories(page);
  await expect(status(page)).toHaveText('4 files, 4 passages.', patience);
  await expect(files(page).first()).toHaveAttribute('data-first', '');
  await expect(files(page).first()).toContainText('one passage');
  const parts = Array.from({ length: 20_000 }, (_, i) => `<p>Part <b>${i}</b></p>`).join('');
  await page.getByRole('button', { name: 'Close the embedding model' }).click();
  await add(page, file('large.html', `<title>No</title><table><tr><td>a<td>b</table>${parts}end`));
  await expect(files(page)).toHaveCount(5);
  const text = await page.evaluate(
    () =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open('qsf-files');
        opening.onerror = () => reject(opening.error!);
        opening.onsuccess = () => {
          const all = opening.result.transaction('files').objectStore('files').getAll();
          all.onsuccess = () => {
            const found = (all.result as { name: string; text: string }[]).find(({ name }) => name === 'large.html');
            resolve(found!.text);
          };
        };
      }),
  );
  const expected = ['a b', ...Array.from({ length: 20_000 }, (_, i) => `Part ${i}`)].join('\n\n');
  // Not compared by a message of half a megabyte.
  expect(text === `${expected}\n\nend`).toBe(true);
  expect(complaints).toEqual([]);
});

test('a page that is nested too deeply is refused, and a file that comes twice is kept once', async ({ page }) => {
  await visit(page);
  await add(page, file('deep.html', `${'<div>'.repeat(100_000)}deep`));
  await expect(page.getByRole('alert')).toContainText('deep.html has elements that are nested too deeply');
  await chooseStories(page);
  const long = Array.from({ length: 400 }, (_, i) => `Paragraph ${i} of kings, of foxes and of the forest.`);
  await add(page, file('long.txt', long.join('\n\n')));
  await expect(files(page)).toContainText('of', patience); // passages that are under way
  await add(page, file('long.txt', 'A short text.'));
  await expect(status(page)).toHaveText('One file, one passage.', patience);
  const kept = await page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const opening = indexedDB.open('qsf-files');
        opening.onsuccess = () => {
          const work = opening.result.transaction(['files', 'vectors']);
          const counts = ['files', 'vectors'].map((name) => work.objectStore(name).count());
          work.oncomplete = () => resolve(counts.map(({ result }) => result));
        };
      }),
  );
  expect(kept).toEqual([1, 1]);
});

test('a chat model answers from the passages, and nothing of a file becomes an element', async ({ page }) => {
  const scripts: string[] = [];
  page.on('request', (request) => request.resourceType() === 'script' && scripts.push(request.url()));
  const complaints = await visit(page);
  await chooseStories(page);
  await add(
    page,
    file('odd.txt', '<img src="/none.png" onerror="document.title=1"> [x](javascript:alert(1))'),
    FILES[0]!,
  );
  await expect(status(page)).toHaveText('2 files, 2 passages.', patience);
  await page.locator('#choose-answering').click();
  const dialog = page.getByRole('dialog', { name: 'Choose a model that answers' });
  await expect(dialog.getByRole('button', { name: 'Open Qwen3 0.6B' })).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'Open MS MARCO MiniLM L6' })).toHaveCount(0);
  await dialog.getByLabel('Name on the Hub, or address').fill(`${demo.address}models/chat.gguf`);
  await dialog.getByRole('button', { name: 'Open', exact: true }).click();
  await expect(page.locator('#answering-text')).toContainText('of memory', patience);

  expect(scripts.filter((url) => url.includes('/markdown-'))).toEqual([]);
  await ask(page, KING);
  expect(scripts.filter((url) => url.includes('/markdown-'))).not.toEqual([]);
  const answer = page.getByRole('log', { name: 'The answer' });
  await expect(answer.locator('.prose')).not.toBeEmpty();
  await expect(answer).toContainText(/chat\.gguf, from the first 2 passages/);
  await expect(page.locator('#hits img, #hits a, .answer img')).toHaveCount(0);
  await expect(page.locator('#hits')).toContainText('<img src="/none.png"');

  await page.getByLabel('Question').fill('A long answer');
  await page.keyboard.press('Enter');
  await expect(answer.locator('.prose')).not.toBeEmpty(patience);
  await page.keyboard.press('Escape');
  await expect(page.locator('#ask-button')).toHaveText('Ask', patience);
  await expect(page.locator('#ask-note'), 'the answer says that it was stopped').toBeEmpty();

  // A model that scores nothing is no reranker, and one without a template answers nothing.
  await page.locator('#choose-reranker').click();
  await page.getByLabel('Name on the Hub, or address').fill(`${demo.address}models/chat.gguf`);
  await page.getByRole('dialog').getByRole('button', { name: 'Open', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText(/rerank|score/i, patience);
  await expect(page.locator('#reranker-name')).toHaveText('None');
  await page.getByRole('button', { name: 'Close the answering model' }).click();
  await expect(page.locator('#choose-answering')).toBeFocused();
  await ask(page, KING);
  await expect(answer).toBeEmpty();
  expect(complaints).toEqual([]);
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing, and a small window is enough (${colorScheme})`, async ({ page }) => {
    const expectClean = async (state: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(
        violations.map(({ id, nodes }) => `${state}: ${id} at ${nodes.map((n) => n.target.join(' ')).join()}`),
      ).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), state).toBe(320);
    };
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 320, height: 640 });
    await visit(page);
    await expectClean('before');
    await add(page, ...FILES, { name: 'a.bin', mimeType: '', buffer: Buffer.from([0xc3, 0x28]) });
    await expectClean('a file that is no text');
    await page.locator('#choose-embedding').click();
    await expectClean('picker');
    await page.keyboard.press('Escape');
    await chooseStories(page);
    await expect(status(page)).toHaveText('4 files, 4 passages.', patience);
    await ask(page, KING);
    await expectClean('passages');
  });
}
