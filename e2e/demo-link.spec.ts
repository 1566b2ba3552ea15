// Links to the demo that name a model: the question before anything is requested, its answers, and pages that frame it.
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';

import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { Demo, patience, planned, slider } from './demo.js';

let demo: Demo;
/** Another origin, which has the demo and its model, and sends no headers but what reading needs. */
let other: Server;
let origin: string;
/** The paths that were requested of it. */
let asked: string[] = [];

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

test.beforeAll(async () => {
  demo = await Demo.start();
  other = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://host');
    asked.push(pathname);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Allow-Headers', '*');
    if (request.method === 'OPTIONS') return void response.end();
    const path = pathname === '/' ? 'index.html' : pathname.slice(1);
    try {
      const bytes = readFileSync(join(demo.folder, path));
      const type =
        extname(path) === '.wasm' ? 'application/wasm' : (TYPES[extname(path)] ?? 'application/octet-stream');
      response.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes.length }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => other.listen(0, 'localhost', resolve));
  origin = `http://localhost:${(other.address() as AddressInfo).port}`;
});
test.afterAll(async () => {
  other.closeAllConnections();
  other.close();
  await demo.stop();
});
test.beforeEach(() => {
  asked = [];
});

const linkTo = (model: string, budget = 16) =>
  `#${new URLSearchParams({ prompt: 'A link', budget: `${budget}`, model })}`;
const question = (page: Page) => page.getByRole('alertdialog', { name: 'Open the model of this link?' });
/** What a page requests of other hosts than the demo's own. */
function elsewhere(page: Page): string[] {
  const requested: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(demo.address)) requested.push(request.url());
  });
  return requested;
}

test('a model of a link is requested after the visitor agrees', async ({ page }) => {
  const requested = elsewhere(page);
  const at = origin.replace('://', '://ann:s3cret@');
  await page.goto(`${demo.address}${linkTo(`${at}/models/stories-8bit.qsf?key=s3cret`)}`);
  const box = question(page);
  await expect(box).toContainText(new URL(origin).host);
  await expect(page.locator('#linked-address')).toHaveText(
    `${origin.replace('://', '://***@')}/models/stories-8bit.qsf?key=***`,
  );
  await expect(box).toContainText('memory budget is 16 MiB');
  await expect(box.getByRole('button', { name: 'Not now' })).toBeFocused();
  expect((await new AxeBuilder({ page }).analyze()).violations.map(({ id }) => id)).toEqual([]);
  // The budget and the beginning are those of a page without a link.
  await expect(slider(page)).toHaveAttribute('aria-valuetext', '4 MiB');
  await expect(page.locator('#prompt')).not.toHaveValue('A link');

  // Another link takes the place of the first.
  await page.evaluate((hash) => (location.hash = hash), linkTo(`${origin}/models/stories-8bit.qsf`));
  await expect(page.locator('#linked-address')).toHaveText(`${origin}/models/stories-8bit.qsf`);
  expect([requested, asked]).toEqual([[], []]);
  await box.getByRole('button', { name: 'Open' }).click();
  await planned(page);
  await expect(page.locator('#model-name')).toHaveText(`${origin}/models/stories-8bit.qsf`);
  await expect(slider(page)).toHaveAttribute('aria-valuetext', '16 MiB');
  await expect(page.locator('#prompt')).toHaveValue('A link');
  expect(asked).toContain('/models/stories-8bit.qsf');
});

test('a visitor who does not agree gets the page as it was', async ({ page }) => {
  const requested = elsewhere(page);
  await page.goto(`${demo.address}${linkTo('hf:HuggingFaceTB/SmolLM2-135M-Instruct-GGUF', 4032)}`);
  const box = question(page);
  await expect(box).toContainText('from huggingface.co');
  await expect(box).toContainText('memory budget is 4032 MiB');
  await box.getByRole('button', { name: 'Not now' }).click();
  await planned(page);
  await expect(page.locator('#model-title')).toHaveText('Stories');
  await expect(slider(page)).toHaveAttribute('aria-valuetext', '4 MiB');
  expect(new URL(page.url()).hash).toBe('');

  // The same for a link in an open page, by Escape.
  await page.evaluate((hash) => (location.hash = hash), linkTo('https://models.test/%zz%E2%80%AE.gguf'));
  await expect(page.locator('#linked-address')).toHaveText('https://models.test/%zz%E2%80%AE.gguf');
  await page.keyboard.press('Escape');
  await expect(box).toBeHidden();
  await expect(page.locator('#model-title')).toHaveText('Stories');
  expect(new URL(page.url()).hash).toBe('');

  // An address without a model ends the question.
  await page.evaluate((hash) => (location.hash = hash), linkTo('https://models.test/a.gguf'));
  await expect(box).toBeVisible();
  await page.evaluate(() => (location.hash = 'prompt=Once&budget=8'));
  await expect(box).toBeHidden();
  await expect(slider(page)).toHaveAttribute('aria-valuetext', '8 MiB');
  await planned(page);
  expect([requested, asked]).toEqual([[], []]);
});

test('the built-in model opens without a question', async ({ page }) => {
  await demo.visit(page, linkTo(`${demo.address}models/stories-8bit.qsf`));
  await expect(question(page)).toBeHidden();
  await expect(page.locator('#model-title')).toHaveText('Stories');
  await expect(slider(page)).toHaveAttribute('aria-valuetext', '16 MiB');
});

test('a page of another origin cannot frame the demo, or gets no model of a link', async ({ page }) => {
  let src = '';
  const framer = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html').end(`<iframe src="${src.replaceAll('&', '&amp;')}"></iframe>`);
  });
  await new Promise<void>((resolve) => framer.listen(0, 'localhost', resolve));
  const framing = `http://localhost:${(framer.address() as AddressInfo).port}/`;
  try {
    src = demo.address;
    const refused = page.waitForEvent('console', {
      predicate: (message) => message.text().includes('frame-ancestors'),
      ...patience,
    });
    await page.goto(framing);
    await refused;

    // a host that sends no headers
    src = `${origin}/${linkTo('https://models.test/a.gguf')}`;
    await page.goto(framing);
    const frame = page.frameLocator('iframe');
    await expect(frame.locator('#notice-title')).toHaveText('This link’s model was not opened', patience);
    await expect(frame.locator('#linked')).toBeHidden();
    await expect(frame.locator('#model-title')).toHaveText('Stories');
  } finally {
    framer.closeAllConnections();
    framer.close();
  }
});
