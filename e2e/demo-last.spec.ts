// A visitor who comes back to the demo page: the offer to go on with the last conversation, which moves nothing.
import { copyFileSync } from 'node:fs';

import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { Demo, patience, planned } from './demo.js';

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

/** Collects what moves on the pages of a tab from now on, with the distance that the browser computes. */
async function watch(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const moves: string[] = [];
    Object.assign(window, { moves });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & {
        value: number;
        sources: { node?: Element | null }[];
      })[])
        moves.push(`${entry.value}: ${entry.sources.map(({ node }) => node?.id || node?.textContent).join(' ')}`);
    }).observe({ type: 'layout-shift', buffered: true });
  });
  return () =>
    page.evaluate(async () => {
      for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
      return (window as unknown as { moves: string[] }).moves;
    });
}

const offer = (page: Page) => page.locator('#last');

const note = (page: Page, source: string) =>
  page.evaluate((last) => localStorage.setItem('qsf.last', JSON.stringify(last)), {
    source,
    memory: 4 * 1024 * 1024,
    title: 'a model of yours',
  });

/** The model of the page itself, which the browser keeps after a visit. */
const kept = () => `${demo.address}models/stories-8bit.qsf`;

for (const size of [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
]) {
  test(`the offer to go on moves nothing (${size.width} pixels)`, async ({ page }) => {
    await page.setViewportSize(size);
    await demo.visit(page);
    await expect(offer(page)).toBeHidden();
    await note(page, kept());
    const moves = await watch(page);
    await page.reload();
    await planned(page);
    await expect(offer(page)).toHaveText(/with a model of yours, which this browser keeps\.\s*Go on/);
    expect(await moves()).toEqual([]);

    // The browser no longer keeps the model: this visit's offer says so in the same room, and the next one has none.
    await note(page, `${demo.address}models/gone.gguf`);
    await page.reload();
    await expect(offer(page)).toContainText('which is fetched again', patience);
    expect(await moves()).toEqual([]);
    await page.reload();
    await planned(page);
    await expect(offer(page)).toBeHidden();
  });
}

test('a link with a text of its own comes without the offer, and storage that is not the page’s is none', async ({
  page,
}) => {
  const complaints = await demo.visit(page);
  await note(page, kept());
  await page.goto('about:blank');
  await page.goto(`${demo.address}#prompt=Once`);
  await planned(page);
  await expect(offer(page)).toBeHidden();
  for (const broken of ['{', '5', '{"source":1,"memory":2,"title":"x"}']) {
    await page.evaluate((text) => localStorage.setItem('qsf.last', text), broken);
    await page.goto('about:blank');
    await page.goto(demo.address);
    await planned(page);
    await expect(offer(page)).toBeHidden();
  }
  expect(complaints).toEqual([]);
});

test('a double click on the offer opens the model, and does not cancel that', async ({ page }) => {
  const models = `${demo.folder}/models`;
  copyFileSync(`${models}/stories-8bit.qsf`, `${models}/other.qsf`);
  await demo.visit(page);
  await note(page, `${demo.address}models/other.qsf`);
  await page.reload();
  await planned(page);
  // The button that cancels comes into the place of this one.
  await page.getByRole('button', { name: 'Go on', exact: true }).dblclick();
  await expect(page.locator('#status')).toContainText('Room for', patience);
  await expect(page.locator('#model-title')).toHaveText('other.qsf');
});
