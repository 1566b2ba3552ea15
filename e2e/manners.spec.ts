// How the demo page treats its visitors: what is in view, where the focus is, what can be read and seen by everyone, links.
import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';

import { contrast } from './contrast.js';
import { Demo, openAt, patience, planned, setOption, slider, stop, story, unfold, write, writeStory } from './demo.js';

const wide = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

const begin = (page: Page) => page.getByLabel('How the story begins');
const focusIsLost = (page: Page) => page.evaluate(() => document.activeElement === document.body);

/** Whether all of an element is in the window as it is scrolled now. */
async function inView(element: Locator): Promise<boolean> {
  const box = (await element.boundingBox())!;
  const { height } = element.page().viewportSize()!;
  return box.y >= 0 && box.y + box.height <= height;
}

async function expectClean(page: Page, state: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(
    ({ id, nodes }) => `${state}: ${id} at ${nodes.map((n) => n.target.join(' ')).join(', ')}`,
  );
  expect(found).toEqual([]);
}

for (const colorScheme of ['light', 'dark'] as const) {
  for (const [name, viewport] of Object.entries({ wide, phone })) {
    test(`axe finds nothing in any state (${name}, ${colorScheme})`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      await demo.visit(page);
      await expectClean(page, 'before');
      await write(page).click();
      await expect(page.locator('#live')).toContainText('tokens/s', patience);
      await expectClean(page, 'while it writes');
      // The story may have ended: then Stop is off, and does nothing.
      await stop(page).click({ force: true });
      await expect(write(page)).toBeEnabled();
      await page.locator('#options summary').click();
      await openAt(page, '');
      await expect(page.getByRole('dialog').getByRole('alert')).toBeFocused();
      await expectClean(page, 'no address');
      await page.keyboard.press('Escape');
      await unfold(page);
      await slider(page).focus();
      await page.keyboard.press('Home');
      await expect(page.getByRole('alert')).toContainText('too small');
      await expectClean(page, 'refused');
    });
  }

  test(`edges and stripes have a contrast of 3 (${colorScheme})`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await demo.visit(page);
    for (const edge of [
      'textarea',
      '#stop',
      '.chips button',
      '.card',
      'kbd',
      '.meter',
      '#share',
      '.foot pre',
      '.drawing',
    ]) {
      expect(await contrast(page, edge, 'border-top-color'), edge).toBeGreaterThanOrEqual(3);
    }
    expect(await contrast(page, '.bar .ring', 'stripes')).toBeGreaterThanOrEqual(3);
    expect(await contrast(page, '.strip .ring', 'stripes')).toBeGreaterThanOrEqual(3);
  });
}

test('speed, budget and story are in view while it writes', async ({ page }) => {
  await page.setViewportSize(wide);
  await demo.visit(page);
  await write(page).click();
  await expect(page.locator('#live')).toContainText(/[\d.]+ tokens\/s in 4 MiB/, patience);
  for (const id of ['#live', '#budget', '#budget-text', '#bar', '#stop', '#line']) {
    expect(await inView(page.locator(id)), id).toBe(true);
  }
  await expect(page.locator('#timeline')).toContainText(
    /segments, over the last .*: \d+ pinned, \d+ reads, .* computing/,
  );
  await expect(page.locator('#line')).toContainText(/Read per token.*[\d.]+ [KM]iB/);
  await expect(page.locator('.span.read').first()).toBeAttached();
});

test('on a phone the story is written in view, and the memory is folded', async ({ page }) => {
  await page.setViewportSize(phone);
  await demo.visit(page);
  for (const id of ['#model-button', '#write', '#story-title', '.placeholder'])
    expect(await inView(page.locator(id)), id).toBe(true);
  await expect(slider(page)).toBeHidden();
  await unfold(page);
  await expect(slider(page)).toBeVisible();
  await expect(page.locator('#map')).toBeVisible();
  await page.getByRole('button', { name: 'Memory and speed' }).click();
  await expect(slider(page)).toBeHidden();
});

test('the focus is never lost', async ({ page }) => {
  await demo.visit(page);
  await setOption(page, 'Length', '200');
  await write(page).focus();
  await page.keyboard.press('Enter');
  await expect(stop(page)).toBeEnabled();
  await expect(write(page)).toBeFocused();
  await stop(page).focus();
  await expect(stop(page)).toBeDisabled(patience);
  await expect(stop(page)).toBeFocused();
  const remove = page.getByRole('button', { name: 'Remove' });
  await remove.focus();
  await page.keyboard.press('Enter');
  await expect(page.locator('#cache-text')).toHaveText('Not kept in this browser.');
  await expect(remove).toBeFocused();
});

test('an error takes the focus where it happened, and gives it back', async ({ page }) => {
  await demo.visit(page);
  await slider(page).focus();
  await page.keyboard.press('Home');
  const notice = page.getByRole('alert');
  await expect(notice).toBeFocused();
  await expect(page.locator('.budget-card').getByRole('alert')).toBeVisible();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await planned(page);
  await expect(slider(page)).toBeFocused();
  expect(await focusIsLost(page)).toBe(false);

  await begin(page).fill('  ');
  await write(page).click();
  await expect(notice).toBeFocused();
  await expect(page.locator('#form').getByRole('alert')).toContainText('Nothing to begin with');
  await expect(begin(page)).toHaveAttribute('aria-invalid', 'true');
  await begin(page).fill('once '.repeat(700));
  await write(page).click();
  await expect(notice).toContainText(/too long\s+It has \d+ tokens, and there is room for \d+/, patience);
  await expect(notice).toBeFocused();
});

test('a link gives the same text elsewhere, and says so', async ({ page, browser }) => {
  await demo.visit(page);
  await setOption(page, 'Length', '30');
  await begin(page).fill('The owl & the #1 “cat”');
  const text = await writeStory(page);
  await page.getByRole('button', { name: /Copy a link/ }).click();
  await expect(page.locator('#share-text')).toContainText('letter for letter');
  const { hash } = new URL(page.url());
  expect(hash).toContain('budget=4');

  const other = await browser.newPage();
  await demo.visit(other, hash);
  await expect(other.locator('#share-text')).toContainText('the same text here as on every other machine');
  await expect(begin(other)).toHaveValue('The owl & the #1 “cat”');
  expect(await writeStory(other)).toBe(text);
  await other.close();
});

test('a model of one’s own opens by file and by address', async ({ page }) => {
  await demo.visit(page);
  await setOption(page, 'Length', '20');
  await page.locator('#model-button').click();
  await page.getByLabel(/\.qsf file/).setInputFiles(`${demo.folder}/models/stories-8bit.qsf`);
  await planned(page);
  await expect(page.locator('#model-name')).toHaveText('stories-8bit.qsf');
  await expect(page.locator('#cache-text')).toContainText('Read from your file');
  expect((await writeStory(page)).length).toBeGreaterThan(50);
  await openAt(page, `${demo.address}favicon.svg`);
  await expect(page.getByRole('alert')).toContainText('This is no model file');
  await expect(page.getByRole('alert')).toBeFocused();
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Open Stories' }).first().click();
  await planned(page);
  await expect(story(page)).toBeVisible();
});
