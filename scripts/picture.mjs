#!/usr/bin/env node
// Makes docs/demo.png, the picture of the README: the demo in a window of 1280x800, light, in a conversation with the
// built-in model, which gets a chat template here. Needs the WebAssembly modules, qsf-convert and Chromium.
import { join } from 'node:path';

import { openChat, planned, withDemo } from './lib/demo.mjs';
import { main, root } from './lib/process.mjs';

const picture = join(root, 'docs', 'demo.png');
const message = 'Tell me of the king and his daughter. There was once a king who had a beautiful daughter, and';
/** MiB of the budget, with which the whole model just fits. */
const budget = 8;

/** Talks to the model at an address of the page, and takes the picture. */
async function take(page, address, model) {
  await page.goto(address);
  await openChat(page, model);
  const field = page.getByLabel('Message', { exact: true });
  await page.getByRole('slider', { name: 'Memory budget' }).focus();
  const shown = page.locator('#budget-text');
  for (let i = 0; i < 100 && parseFloat(await shown.textContent()) > budget; i++)
    await page.keyboard.press('ArrowLeft');
  await page.waitForTimeout(2000); // the model opens again after the last step of the slider
  await planned(page);
  await page.locator('#maxTokens').evaluate((input) => (input.value = '90'));
  await page.locator('#temperature').evaluate((input) => (input.value = '0.6'));
  await field.fill(message);
  await page.keyboard.press('Enter');
  const answer = page.getByRole('log', { name: 'The conversation' }).locator('.answer');
  await answer.getByRole('button', { name: 'Retry' }).waitFor({ timeout: 120_000 });
  await page.mouse.move(0, 0);
  await field.blur();
  await page.screenshot({ path: picture });
}

await main(async () => {
  await withDemo(async ({ address, model, browser }) => {
    const viewport = { width: 1280, height: 800 };
    await take(await browser.newPage({ viewport, colorScheme: 'light' }), address, model);
  });
  console.log(picture);
});
