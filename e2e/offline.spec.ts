// The hosted site under a path of a plain host: the demo as an application that stays (installed, opened while its server
// is away, isolated by its service worker), and the documents.
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';

import { expect, test } from '@playwright/test';
import type { Page } from '@playwright/test';

import { buildSite, site } from '../scripts/lib/site.mjs';
import { Demo, planned, setOption, writeStory } from './demo.js';

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** The path under which the host has the site. */
const place = '/some/place/';

/** The plainest of hosts: files under a path, no headers but their types, and no ranges. */
function plainHost(folder: string): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://host');
    const path = pathname.startsWith(place) ? pathname.slice(place.length) : '..';
    const file = join(folder, path === '' || path.endsWith('/') ? `${path}index.html` : path);
    if (path.includes('..') || !existsSync(file)) return void response.writeHead(404).end();
    response
      .writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' })
      .end(readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, 'localhost', () => resolve(server)));
}

let demo: Demo;
let server: Server;
let address: string;
test.beforeAll(async () => {
  demo = await Demo.start();
  await buildSite();
  server = await plainHost(site);
  address = `http://localhost:${String((server.address() as AddressInfo).port)}${place}`;
});
test.afterAll(async () => {
  server.close();
  await demo.stop();
});

const active = (page: Page) =>
  page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    return (await caches.keys()).length;
  });
const isIsolated = (page: Page) => page.evaluate(() => crossOriginIsolated);

test('has every document as a page, whose links lead somewhere', async ({ page }) => {
  const waiting = ['README.html'];
  const seen = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const answer = await page.request.get(`${address}${path}`);
    expect(answer.status(), path).toBe(200);
    if (!path.endsWith('.html')) continue;
    const links = [...(await answer.text()).matchAll(/(?:href|src)="([^"#:]+)(?:#[^"]*)?"/g)];
    for (const [, link = ''] of links) {
      const { pathname } = new URL(link, `http://host${place}${path}`);
      expect(pathname.startsWith(place), `${path} links to ${link}`).toBe(true);
      waiting.push(pathname.slice(place.length));
    }
  }
  expect(seen.size).toBeGreaterThan(20);
  await page.goto(`${address}README.html`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  const [wide, room] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  expect(wide, 'the picture is no wider than its page').toBe(room);
});

test('opens and writes the same story while the server is away', async ({ page, context }) => {
  await page.goto(address);
  await planned(page);
  expect(await isIsolated(page)).toBe(false);
  await setOption(page, 'Length', '20');
  await setOption(page, 'Seed', '5');
  const story = await writeStory(page);
  expect(await active(page)).toBe(1);

  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  for (const path of ['', 'index.html']) {
    await page.goto(`${address}${path}`);
    await planned(page);
    // The service worker says what this host does not: there are threads now.
    expect(await isIsolated(page)).toBe(true);
    await expect(page.locator('#figures')).toContainText(/[2-4] threads/);
  }
  await page.reload();
  await planned(page);
  await setOption(page, 'Length', '20');
  await setOption(page, 'Seed', '5');
  expect(await writeStory(page)).toBe(story);
  await expect(page.locator('#figures')).toContainText(/Downloaded\s*0 B/);
  await page.goto(`${address}examples.html`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  expect(context.serviceWorkers()).toHaveLength(1);
});

test('can be installed', async ({ page }) => {
  await page.goto(demo.address);
  await active(page);
  const session = await page.context().newCDPSession(page);
  const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
  expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito')).toEqual([]);
  const { errors, data } = await session.send('Page.getAppManifest');
  expect(errors).toEqual([]);
  const { icons } = JSON.parse(data ?? '{}') as { icons: { src: string; sizes: string }[] };
  for (const { src, sizes } of icons.filter(({ sizes: all }) => all !== 'any')) {
    const size = await page.evaluate(async (from) => {
      const image = new Image();
      image.src = from;
      await image.decode();
      return `${String(image.naturalWidth)}x${String(image.naturalHeight)}`;
    }, src);
    expect(size, src).toBe(sizes);
  }
});
