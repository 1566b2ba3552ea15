// Models of the visitor's own in the demo page: their addresses, what is shown and shared of them, and those that do not answer.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect, test } from '@playwright/test';

import { Demo, openAt, patience, planned, setOption, stop, write, writeStory } from './demo.js';

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

const model = () => `${demo.address}models/stories-8bit.qsf`;

test('an address is taken in any case of letters, and no secret of it is shown', async ({ page }) => {
  await demo.visit(page);
  await expect(page.locator('#honest')).toBeVisible();
  const typed = `${model().replace('http', 'Http')}?key=s3cret`;
  await openAt(page, typed);
  await expect(page.locator('#model-name')).toHaveText(`${model()}?key=***`);
  await planned(page);
  await expect(page.locator('#honest')).toBeHidden();
  await setOption(page, 'Length', '20');
  const text = await writeStory(page);
  await page.getByRole('button', { name: /Copy a link/ }).click();
  await expect(page.locator('#share-text')).toContainText('It holds all of the model’s address, keys in it too.');

  // a link in which somebody has typed the address
  const words = new URLSearchParams(new URL(page.url()).hash.slice(1));
  words.set('model', typed);
  await page.goto('about:blank');
  await page.goto(`${demo.address}#${words}`);
  const question = page.getByRole('alertdialog', { name: 'Open the model of this link?' });
  await expect(question).toContainText(`${model()}?key=***`);
  await question.getByRole('button', { name: 'Open' }).click();
  await planned(page);
  await expect(page.locator('#model-name')).toHaveText(`${model()}?key=***`);
  expect(await writeStory(page)).toBe(text);
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Open Stories' }).first().click();
  await planned(page);
  await expect(page.locator('#honest')).toBeVisible();
});

test('a user and a password are neither shown nor shared', async ({ page }) => {
  await demo.visit(page);
  await openAt(page, model().replace('://', '://ann:s3cret@'));
  const notice = page.getByRole('alert');
  await expect(notice).toContainText('a user or a password');
  await expect(notice.getByRole('button')).toHaveText('Back to Stories');
  await page.getByRole('button', { name: /Copy a link/ }).click();
  await expect(page.locator('#share-text')).toContainText('letter for letter');
  expect(decodeURIComponent(page.url())).toContain('models/stories-8bit.qsf');
  await openAt(page, 'ann:s3cret@models.test');
  await expect(notice).toContainText('This is none');
  await page.keyboard.press('Escape');
  await expect(notice).toBeHidden();
  await page.locator('#model-button').click();
  await page.getByLabel('Name on the Hub, or address').fill('');
  await page.keyboard.press('Escape');
  expect(await page.locator('body').innerText()).not.toMatch(/s3cret|ann/);
  expect(page.url()).not.toMatch(/s3cret|ann/);
});

test('an address that does not answer can be stopped, and tried again', async ({ page }) => {
  await demo.visit(page);
  const dead = createServer(({ socket }) => socket.destroy());
  await new Promise<void>((resolve) => dead.listen(0, 'localhost', resolve));
  const { port } = dead.address() as AddressInfo;
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, 'localhost', resolve));
  const waiting = `http://localhost:${(silent.address() as AddressInfo).port}/model.qsf`;
  try {
    await openAt(page, waiting);
    await expect(page.locator('#status')).toContainText('Planning');
    await expect(stop(page)).toBeEnabled();
    await stop(page).click();
    await expect(page.locator('#status')).toHaveText('Stopped. The next text opens the model.');
    await expect(stop(page)).toBeDisabled();
    await write(page).click();
    await expect(page.locator('#status')).toContainText('Planning');
    await page.keyboard.press('Escape');
    await expect(page.locator('#status')).toHaveText('Stopped. The next text opens the model.');
    await expect(write(page)).toBeEnabled();

    await openAt(page, `http://localhost:${port}/model.qsf`);
    const notice = page.getByRole('alert');
    await expect(notice.getByRole('button', { name: 'Try again' })).toBeVisible(patience);
    await openAt(page, `${demo.address}favicon.svg`);
    await expect(notice).toContainText('This is no model file', patience);
    await expect(notice.getByRole('button')).toHaveText('Back to Stories');
    // Nothing is drawn of a model that is not open, and no room is kept for it.
    for (const part of ['#map-title', '#figures']) await expect(page.locator(part)).toBeHidden();
    await expect(page.locator('#timeline')).toHaveCSS('min-height', '0px');
    await openAt(page, `${demo.address}none.qsf`);
    await expect(notice).toContainText('The model could not be fetched', patience);
    await notice.getByRole('button', { name: 'Back to Stories' }).click();
    await expect(notice).toBeHidden();
    await planned(page);
    await expect(page.locator('#model-title')).toHaveText('Stories');
  } finally {
    dead.close();
    silent.closeAllConnections();
    silent.close();
  }
});
