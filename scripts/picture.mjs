#!/usr/bin/env node
// Makes docs/demo.png, the picture of the README: the demo in a window of 1280x800, light, in a conversation with the
// built-in model, which gets a chat template here. Needs the WebAssembly modules, qsf-convert and Chromium.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from '@playwright/test';
import { build, preview } from 'vite';

import { chromiumArgs, chromiumPath } from '../e2e/chromium.mjs';
import { buildConverter, buildModules, convertModel } from './lib/build.mjs';
import { buildPackage } from './lib/package.mjs';
import { main, root, run } from './lib/process.mjs';

const picture = join(root, 'docs', 'demo.png');
/** The model knows stories, so an answer goes on with the message. */
const template = '{% for m in messages %}{{ m.content }}{% endfor %}';
const message = 'Tell me of the king and his daughter. There was once a king who had a beautiful daughter, and';
/** MiB of the budget, with which the whole model just fits. */
const budget = 8;

/** Writes the built-in model with the chat template into the page's folder of models. */
async function addModel(folder) {
  const model = join(folder, 'stories');
  cpSync(join(root, 'models', 'stories'), model, { recursive: true });
  writeFileSync(join(model, 'chat_template.jinja'), template);
  const to = join(folder, 'page', 'models', 'stories-chat.qsf');
  await run(join(root, 'build', 'bin', 'qsf-convert'), [model, to, '--quant-type', '8bit']);
}

/** Talks to the model at an address of the page, and takes the picture. */
async function take(page, address) {
  await page.goto(address);
  await page.locator('#model-button').click();
  const picker = page.getByRole('dialog', { name: 'Choose a model' });
  await picker.getByLabel('Name on the Hub, or address').fill(`${address}models/stories-chat.qsf`);
  await picker.getByRole('button', { name: 'Open', exact: true }).click();
  const field = page.getByLabel('Message', { exact: true });
  await field.waitFor({ timeout: 60_000 });
  await page.getByRole('slider', { name: 'Memory budget' }).focus();
  const shown = page.locator('#budget-text');
  for (let i = 0; i < 100 && parseFloat(await shown.textContent()) > budget; i++)
    await page.keyboard.press('ArrowLeft');
  await page.waitForTimeout(2000); // the model opens again after the last step of the slider
  await page.getByRole('status').filter({ hasText: 'Room for' }).waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'hidden', timeout: 60_000 });
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
  await buildConverter();
  await buildModules();
  await buildPackage();
  await convertModel();
  const folder = mkdtempSync(join(tmpdir(), 'qsf-picture-'));
  try {
    const demo = join(root, 'web', 'demo');
    const config = { root: demo, logLevel: 'warn', build: { outDir: join(folder, 'page'), emptyOutDir: true } };
    await build(config);
    await addModel(folder);
    const server = await preview({ ...config, preview: { host: 'localhost', port: 4274 } });
    const browser = await chromium.launch({ executablePath: chromiumPath, args: chromiumArgs });
    try {
      const viewport = { width: 1280, height: 800 };
      await take(await browser.newPage({ viewport, colorScheme: 'light' }), server.resolvedUrls.local[0]);
    } finally {
      await browser.close();
      await server.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  console.log(picture);
});
