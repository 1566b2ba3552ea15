// The page of examples: each runs as it is shown.
import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';

import { Demo, patience } from './demo.js';

/** What each must say, by its title. */
const SAID: Record<string, RegExp> = {
  'Text, piece by piece': /\w+ \w+/,
  Budgets: /3 MiB: \d+ of (\d+) segments.*\n8 MiB: (\d+) of \2 segments/,
  'The same bits': /The same bits twice\./,
  'Where it stops': /It ended by (stop|length) after \d+ tokens/,
  'Going on': /…\n[^]*\n\d+ tokens are in the cache/,
  'Giving up': /TimeoutError: it stopped at once|It was done before/,
  Embeddings: /An old king lived there\. -?[01]\.\d{3}\n[^]*sea\. -?[01]\.\d{3}/,
  Errors: /^budget_too_small: .*1\.25 MiB/,
  'What is kept': /stories-8bit\.qsf: [\d.]+ MiB, complete\n1 together take [\d.]+ MiB\./,
};

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

test('every example does what it says', async ({ page }) => {
  await page.goto(`${demo.address}examples.html`);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const name of ['Chat and stories', 'Ask your own files'])
    await expect(page.getByRole('link', { name }).filter({ visible: true })).toHaveCount(1);
  await expect(page.getByRole('log').filter({ visible: true })).toHaveCount(0);
  const titles = await page.locator('.example h2').allTextContents();
  expect(titles.sort()).toEqual(Object.keys(SAID).sort());
  for (const [title, said] of Object.entries(SAID)) {
    const example = page.getByRole('region', { name: title, exact: true });
    await example.getByRole('button', { name: 'Run' }).click();
    const out = example.getByRole('log');
    await expect(out, title).toHaveAttribute('data-state', 'done', patience);
    expect(await out.textContent(), title).toMatch(said);
  }
  expect((await new AxeBuilder({ page }).analyze()).violations.map(({ id }) => id)).toEqual([]);
});
