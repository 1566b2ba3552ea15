// The demo page as a visitor meets it: stories, stopping, budgets and their map, the keyboard, a phone-sized window.
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import {
  Demo,
  patience,
  planned,
  setOption,
  slider,
  stop,
  stopPast,
  story,
  unfold,
  write,
  writeStory,
} from './demo.js';

const MiB = 1024 * 1024;

let demo: Demo;
const visit = (page: Page) => demo.visit(page);

test.beforeAll(async () => {
  demo = await Demo.start();
});

test.afterAll(async () => {
  await demo.stop();
});

/** The legend's rows in bytes, by label. */
async function legend(page: Page): Promise<Map<string, number>> {
  const rows = await page.locator('.legend tbody tr').evaluateAll((all) =>
    all.map((row) => {
      const label = row.querySelector('th span:not(.swatch)')?.textContent ?? '';
      return [label, Number(row.querySelector('[data-bytes]')?.getAttribute('data-bytes'))] as const;
    }),
  );
  return new Map(rows);
}

/** Whether anything reaches beyond the window's right edge. */
const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

test('writes a story under its own policy, asking nobody else', async ({ page }) => {
  const complaints = await visit(page);
  await setOption(page, 'Length', '60');
  const text = await writeStory(page);
  expect(text.startsWith('Once upon a time there was a little fox who')).toBe(true);
  expect(text.length).toBeGreaterThan('Once upon a time there was a little fox who'.length + 40);
  await expect(page.locator('#figures')).toContainText(/[\d.]+ tokens\/s/);
  await expect(page.locator('#figures')).toContainText(/WebAssembly(relaxed )?SIMD, (one thread|[2-4] threads)/);
  await expect(page.getByRole('row', { name: /^4 MiB/ })).toBeVisible();
  expect(complaints).toEqual([]);
});

test('the seed decides the story', async ({ page }) => {
  await visit(page);
  await setOption(page, 'Length', '40');
  await setOption(page, 'Seed', '7');
  const seven = await writeStory(page);
  expect(await writeStory(page)).toBe(seven);
  await setOption(page, 'Seed', '8');
  expect(await writeStory(page)).not.toBe(seven);
});

test('stops at once and writes again', async ({ page }) => {
  await visit(page);
  const begin = (await page.getByLabel('How the story begins').inputValue()).length;
  await setOption(page, 'Length', '100');
  await setOption(page, 'Seed', '3');
  const isStopped = stopPast(page, '#story p', begin, 'stop');
  await write(page).click();
  await isStopped;
  await expect(write(page)).toBeEnabled();
  const stopped = await story(page).textContent();
  await page.waitForTimeout(300);
  expect(await story(page).textContent()).toBe(stopped);
  const whole = await writeStory(page);
  expect(whole.startsWith(stopped ?? '?')).toBe(true);
  expect(whole.length).toBeGreaterThan(stopped?.length ?? 0);
});

test('the map adds up to every budget, and less memory streams more', async ({ page }) => {
  await visit(page);
  const streamed: number[] = [];
  for (const mib of [64, 8, 4, 3]) {
    await slider(page).focus();
    await page.keyboard.press('End');
    while ((await page.locator('#budget-text').textContent()) !== `${mib} MiB`) await page.keyboard.press('ArrowLeft');
    await expect(page.locator('[data-total]')).toHaveAttribute('data-total', String(mib * MiB));
    const parts = await legend(page);
    expect([...parts.values()].reduce((sum, bytes) => sum + bytes, 0)).toBe(mib * MiB);
    expect([...parts.values()].every((bytes) => bytes >= 0)).toBe(true);
    // the engine's constant for what the arena does not hold: nothing else may end up there
    expect(parts.get('Stack and data')).toBe(1 * MiB);
    streamed.push(await page.locator('.strip .ring').count());
    expect((parts.get('Weights streamed') ?? 0) > 0).toBe(streamed.at(-1) !== 0);
  }
  expect(streamed[0]).toBe(0);
  expect(streamed.at(-1)).toBeGreaterThan(0);
  expect([...streamed].sort((a, b) => a - b)).toEqual(streamed);
});

test('a budget that is too small is refused with a way on', async ({ page }) => {
  await visit(page);
  await slider(page).focus();
  await page.keyboard.press('Home');
  const notice = page.getByRole('alert');
  await expect(notice).toContainText('This budget is too small for the model');
  await expect(notice).toContainText(/needs?\b/);
  await expect(write(page)).toBeDisabled();
  await notice.getByRole('button', { name: 'Use the smallest that works' }).click();
  await planned(page);
  await expect(notice).toBeHidden();
  await expect(page.locator('#map-title')).toBeVisible();
  await setOption(page, 'Length', '30');
  expect((await writeStory(page)).length).toBeGreaterThan(60);
});

test('works by keyboard alone', async ({ page }) => {
  await visit(page);
  const begin = page.getByLabel('How the story begins');
  for (let i = 0; i < 6 && !(await begin.evaluate((e) => e === document.activeElement)); i++) {
    await page.keyboard.press('Tab');
  }
  await expect(begin).toBeFocused();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('The king was');
  await page.keyboard.press('Control+Enter');
  await expect(stop(page)).toBeEnabled();
  await expect(story(page)).toContainText(/^The king was\s*\S/, patience);
  await page.keyboard.press('Escape');
  await expect(stop(page)).toBeDisabled();
  const summary = page.locator('#options summary');
  for (let i = 0; i < 10 && !(await summary.evaluate((e) => e === document.activeElement)); i++) {
    await page.keyboard.press('Tab');
  }
  await expect(summary).toBeFocused();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await expect(page.getByLabel('Temperature')).toBeFocused();
});

test('keeps the model in the browser until told to remove it', async ({ page }) => {
  await visit(page);
  await expect(page.locator('#cache-text')).toContainText('Kept in this browser');
  await page.reload();
  await planned(page);
  await expect(page.locator('#figures')).toContainText(/Downloaded\s*0 B/);
  await setOption(page, 'Length', '30');
  await page.getByRole('button', { name: 'Remove' }).click();
  await expect(page.locator('#cache-text')).toHaveText('Not kept in this browser.');
  expect((await writeStory(page)).length).toBeGreaterThan(60);
  await expect(page.locator('#cache-text')).toContainText('Kept in this browser');
});

for (const width of [320, 360, 390, 768, 1280]) {
  test(`a window of ${width} pixels does not scroll sideways`, async ({ page }) => {
    await page.setViewportSize({ width, height: 800 });
    await visit(page);
    await setOption(page, 'Length', '30');
    await writeStory(page);
    expect(await scrollsSideways(page)).toBe(false);
    await unfold(page);
    expect(await scrollsSideways(page)).toBe(false);
    await slider(page).focus();
    await page.keyboard.press('Home');
    await expect(page.getByRole('alert')).toBeVisible();
    expect(await scrollsSideways(page)).toBe(false);
  });
}
