// Formulas and long texts of answers in the demo page, as a conversation that is imported has them.
import { writeFileSync } from 'node:fs';

import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { Demo, openAt, patience, planned } from './demo.js';
import { convertForChat } from './native.js';

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
  writeFileSync(`${demo.folder}/models/chat.gguf`, await convertForChat('{{ messages[0].content }}'));
});
test.afterAll(async () => {
  await demo.stop();
});

/** Opens the page with a conversation of one answer, and returns its complaints and the scripts that it requested. */
async function openAnswer(page: Page, content: string) {
  const scripts: string[] = [];
  page.on('request', (request) => scripts.push(new URL(request.url()).pathname));
  const complaints = await demo.visit(page);
  await openAt(page, `${demo.address}models/chat.gguf`);
  await planned(page);
  await expect(page.locator('#composer')).toBeVisible(patience);
  const math = () => scripts.filter((path) => /\/math-.*\.js$/.test(path));
  expect(math()).toEqual([]);
  const messages = [
    { role: 'user', content: 'Well?' },
    { role: 'assistant', content },
  ];
  const chats = [{ id: 'a', title: 'Kept', model: 'Another', time: 1_700_000_000_000, data: { version: 1, messages } }];
  await page.getByRole('button', { name: 'History' }).click();
  const buffer = Buffer.from(JSON.stringify({ version: 1, chats }));
  await page.getByLabel('Import').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer });
  await page.getByRole('button', { name: 'Kept', exact: true }).click();
  return { complaints, math };
}

const answer = (page: Page) => page.getByRole('log', { name: 'The conversation' }).locator('.answer');

test('formulas are shown as such, for readers of screens too, by a script that only they need', async ({ page }) => {
  const hostile = '\\(\\def\\a{\\a\\a}\\a\\)';
  const text = [
    'So \\(a_1 * b_1\\) and $x^2$, for $5 and $6:',
    '\\[\n\\frac{1}{2}\n\\]',
    hostile,
    '\\(\\href{javascript:alert(1)}{x}\\)',
  ];
  const { complaints, math } = await openAnswer(page, text.join('\n\n'));
  await expect(answer(page).getByRole('math')).toHaveCount(4, patience);
  await expect(answer(page).locator('mfrac')).toBeVisible();
  await expect(answer(page)).toContainText('for $5 and $6:');
  await expect(answer(page)).toContainText(hostile);
  await expect(answer(page).locator('a, em')).toHaveCount(0);
  expect(math()).toHaveLength(1);
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  expect(complaints).toEqual([]);
});

test('a text of 40,000 lines is in parts, and its end is shown first', async ({ page }) => {
  const lines = Array.from({ length: 40_000 }, (_, i) => `line ${i}`).join('\n');
  const { math } = await openAnswer(page, lines);
  await expect(answer(page)).toContainText('line 39999', patience);
  await expect(answer(page)).toContainText('line 0\n', { ...patience, useInnerText: false });
  const sizes = await answer(page)
    .locator('.long')
    .evaluateAll((parts) => parts.map((part) => part.textContent.length));
  expect(sizes.length).toBeGreaterThan(40);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8192);
  expect(math()).toEqual([]);
});
