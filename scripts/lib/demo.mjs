// The built demo for pictures of it: served with a model that has a chat template, and open in Chromium.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromiumArgs, chromiumPath } from '../../e2e/chromium.mjs';
import { buildConverter, buildModules, convertModel } from './build.mjs';
import { buildPackage } from './package.mjs';
import { root, run } from './process.mjs';

/** The model knows stories, so an answer goes on with the message. */
const template = '{% for m in messages %}{{ m.content }}{% endfor %}';

/** Writes the built-in model with the chat template into the page's folder of models. Returns its path. */
async function addModel(folder) {
  const model = join(folder, 'stories');
  cpSync(join(root, 'models', 'stories'), model, { recursive: true });
  writeFileSync(join(model, 'chat_template.jinja'), template);
  const to = join(folder, 'page', 'models', 'stories-chat.qsf');
  await run(join(root, 'build', 'bin', 'qsf-convert'), [model, to, '--quant-type', '8bit']);
  return to;
}

/**
 * Calls `body` with the address of the demo, that of the model with a chat template, its file, a Chromium, and a function
 * that stops the server. Builds whatever is missing.
 */
export async function withDemo(body) {
  // The imports are late, so that commands without a browser do not need them.
  const { chromium } = await import('@playwright/test');
  const { build, preview } = await import('vite');
  await buildConverter();
  await buildModules();
  await buildPackage();
  await convertModel();
  const folder = mkdtempSync(join(tmpdir(), 'qsf-picture-'));
  try {
    const demo = join(root, 'web', 'demo');
    const config = { root: demo, logLevel: 'warn', build: { outDir: join(folder, 'page'), emptyOutDir: true } };
    await build(config);
    const file = await addModel(folder);
    const server = await preview({ ...config, preview: { host: 'localhost', port: 4274 } });
    const browser = await chromium.launch({ executablePath: chromiumPath, args: chromiumArgs });
    const [address] = server.resolvedUrls.local;
    let stopped;
    const stopServer = () => (stopped ??= server.close());
    try {
      await body({ address, model: `${address}models/stories-chat.qsf`, file, browser, stopServer });
    } finally {
      await browser.close();
      await stopServer();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Opens the model at an address that is typed, and waits for its conversation. */
export async function openChat(page, model) {
  await openAt(page, model);
  await page.getByLabel('Message', { exact: true }).waitFor({ timeout: 60_000 });
  await planned(page);
}

/** Types an address into the picker. */
export async function openAt(page, address) {
  await page.locator('#model-button').click();
  const picker = page.getByRole('dialog', { name: 'Choose a model' });
  await picker.getByLabel('Name on the Hub, or address').fill(address);
  await picker.getByRole('button', { name: 'Open', exact: true }).click();
}

/** Waits until a model is open with the chosen budget. */
export async function planned(page) {
  await page.getByRole('status').filter({ hasText: 'Room for' }).waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'hidden', timeout: 60_000 });
}
