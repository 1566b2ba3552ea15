// A story of the demo page from its first word to its end: what is in view, how fast it is said to be, why it ended, going on.
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { Demo, patience, planned, setOption, slider, stop, stopPast, story, write, writeStory } from './demo.js';

const sizes = { phone: { width: 390, height: 844 }, wide: { width: 1280, height: 800 } };

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

const ending = (page: Page) => page.locator('#ending-text');
const goOn = (page: Page) => page.getByRole('button', { name: 'Go on' });

/** Opens the model with the slider's last budget, in which all of it stays and its context is its own. */
async function giveAll(page: Page): Promise<void> {
  await slider(page).focus();
  await page.keyboard.press('End');
  await expect(page.locator('#status')).toContainText('Room for 512 tokens', patience);
}

/** Whether the last character of the story is in the window. */
const seesEnd = (page: Page): Promise<boolean> =>
  story(page).evaluate((p) => {
    const range = document.createRange();
    range.selectNodeContents(p);
    const { top, bottom } = [...range.getClientRects()].at(-1)!;
    return top >= 0 && bottom <= innerHeight;
  });

for (const [name, size] of Object.entries(sizes)) {
  test(`the view follows the text that is written, until the reader scrolls away (${name})`, async ({ page }) => {
    await page.setViewportSize(size);
    await demo.visit(page);
    await setOption(page, 'Length', '200');
    await page.locator('#options summary').click();
    await page.evaluate(() => scrollTo(0, 0));
    await writeStory(page);
    expect(await seesEnd(page)).toBe(true);
    await expect(ending(page)).toBeInViewport();
    await expect(goOn(page)).toBeInViewport({ ratio: 1 });

    // The reader scrolls away inside the page, because a look from here may miss a short story.
    const began = page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const box = document.getElementById('story')!;
          new MutationObserver((_, observer) => {
            observer.disconnect();
            const first = box.scrollTop;
            const follow = () => {
              if (box.scrollTop <= 60) return void requestAnimationFrame(follow);
              box.scrollTo(0, 0);
              scrollTo(0, 0);
              resolve(first);
            };
            follow();
          }).observe(box, { childList: true });
        }),
    );
    await write(page).click();
    expect(await began).toBe(0);
    await expect(stop(page)).toBeDisabled(patience);
    expect(await page.evaluate(() => scrollY)).toBe(0);
    expect(await page.locator('#story').evaluate((box) => box.scrollTop)).toBe(0);
  });
}

test('the speeds over time have the story’s own between them', async ({ page }) => {
  await demo.visit(page);
  await giveAll(page);
  for (const length of ['30', '200']) {
    await setOption(page, 'Length', length);
    await writeStory(page);
    const figure = async (box: string, label: string) =>
      Number(
        (
          await page
            .locator(`${box} div`, { has: page.getByText(label, { exact: true }) })
            .locator('dd')
            .innerText()
        ).replace(/ .*/, ''),
      );
    const mean = await figure('#figures', 'Speed');
    expect(mean).toBeGreaterThan(1);
    expect(await figure('#line', 'Tokens per second now')).toBeGreaterThan(mean / 10);
    // a last stretch of a few tokens counts in the mean alone
    expect(await figure('#line', 'Fastest')).toBeGreaterThan(0.8 * mean);
  }
});

test('a story says why it ended, and goes on from there', async ({ page }) => {
  await demo.visit(page);
  await giveAll(page);
  await setOption(page, 'Length', '40');
  await setOption(page, 'Seed', '3');
  const first = await writeStory(page);
  await expect(ending(page)).toHaveText('It has the 40 tokens that the length allows.');
  await goOn(page).focus();
  await page.keyboard.press('Enter');
  await expect(stop(page)).toBeDisabled(patience);
  await expect.poll(async () => (await story(page).textContent())?.length, patience).toBeGreaterThan(first.length + 40);
  expect((await story(page).textContent())?.startsWith(first)).toBe(true);
  expect(await page.evaluate(() => document.activeElement === document.body)).toBe(false);

  await page.getByRole('button', { name: /Copy a link/ }).click();
  await expect(page.locator('#share-text')).toContainText('this text up to where you went on, letter for letter');

  await setOption(page, 'Length', '480');
  await writeStory(page);
  for (let i = 0; i < 3 && (await goOn(page).isVisible()); i++) {
    await goOn(page).click();
    await expect(stop(page)).toBeDisabled(patience);
    await expect(ending(page)).not.toBeEmpty();
  }
  await expect(ending(page)).toHaveText(
    /context of 512 tokens is full; it is as long as this model allows|ended its text/,
  );
  await expect(goOn(page)).toBeHidden();
});

test('a story that was stopped has all that was made, and goes on from there', async ({ page }) => {
  await demo.visit(page);
  await setOption(page, 'Length', '400');
  const begin = (await page.getByLabel('How the story begins').inputValue()).length;
  const isStopped = stopPast(page, '#story p', begin, 'stop');
  await write(page).click();
  await isStopped;
  await expect(ending(page)).toHaveText('You stopped it here.');
  await goOn(page).click();
  const stopHere = page.getByRole('button', { name: 'Stop here' });
  await expect(stopHere).toBeFocused();
  await expect(stopHere).toBeInViewport({ ratio: 1 });
  await page.keyboard.press('Enter');
  await expect(ending(page)).toHaveText('You stopped it here.');
  await expect(goOn(page)).toBeFocused();
  const stopped = (await story(page).textContent())!;
  await goOn(page).click();
  await expect(ending(page)).toContainText('tokens', patience);
  const whole = (await story(page).textContent())!;
  expect(whole.startsWith(stopped)).toBe(true);
  expect(whole.length).toBeGreaterThan(stopped.length + 100);
  await slider(page).focus();
  await page.keyboard.press('ArrowRight');
  await planned(page);
  await expect(goOn(page)).toBeHidden();
});

test('more memory is advised only if it makes room', async ({ page }) => {
  await demo.visit(page);
  const begin = page.getByLabel('How the story begins');
  await begin.fill('once '.repeat(700));
  await write(page).click();
  const notice = page.getByRole('alert');
  await expect(notice).toContainText('room for 256 of them. Shorten it, or give the model more memory.', patience);
  await giveAll(page);
  await write(page).click();
  await expect(notice).toContainText('room for 512 of them. Shorten it: more memory does not help.', patience);
});
