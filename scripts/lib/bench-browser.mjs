// Engines in Chromium, each in its own page, which stays open.
import { mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { chromiumArgs, chromiumPath } from '../../e2e/chromium.mjs';
import { removeProfile } from '../../e2e/profile.mjs';
import { alternate, modelFiles, modelsFolder } from './bench.mjs';
import { serveBench } from './bench-server.mjs';
import { variants } from './build.mjs';

/** Options with which a page in the background computes as fast as one in front. */
const inBackground = ['--disable-background-timer-throttling', '--disable-renderer-backgrounding'];

/** Returns memory for the whole model and a short context. */
export const memoryFor = (qsf) => Math.ceil(statSync(qsf).size * 1.1) + 256 * 2 ** 20;

/** QSF in each of its builds, and the peers. */
const own = variants.map((variant) => ({ engine: `qsf ${variant}`, name: 'qsf', variant }));
const peers = [
  { engine: 'wllama 2.4.0', name: 'wllama-2' },
  { engine: 'wllama 3.8.1', name: 'wllama-3' },
];

/**
 * Calls `body` with a Chromium whose profile is on disk. `open()` returns a page of the benchmark, `address()` the
 * address of a model's file, `version()` the browser's version.
 */
export async function inBrowser(body) {
  // The import is late, so that commands without a browser do not need it.
  const { chromium } = await import('@playwright/test');
  const server = await serveBench(modelsFolder);
  const profile = mkdtempSync(join(tmpdir(), 'qsf-bench-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    args: [...chromiumArgs, ...inBackground],
  });
  const open = async () => {
    const page = await context.newPage();
    page.on('pageerror', (error) => console.error(String(error)));
    await page.goto(server.origin);
    await page.waitForFunction(() => 'bench' in globalThis);
    return page;
  };
  const address = (name) => `${server.origin}/models/${name}`;
  const version = () => `Chromium ${context.browser()?.version() ?? ''}`.trim();
  try {
    return await body({ open, address, version });
  } finally {
    await context.close();
    await server.stop();
    await removeProfile(profile);
  }
}

/** Measures models in Chromium, and the peers too on request. Returns the rows and the browser's version. */
export async function measureBrowser({ models, threads, runs, work, withPeers = false }) {
  return inBrowser(async (browser) => {
    const rows = [];
    for (const model of models) {
      const files = await modelFiles(model);
      const subjects = [];
      const pages = [];
      for (const { engine, name, variant } of withPeers ? [...own, ...peers] : own) {
        const page = await browser.open();
        const [gguf, qsf] = [files.gguf, files.qsf].map((path) => browser.address(basename(path)));
        const settings = { gguf, qsf, threads, variant, memory: memoryFor(files.qsf) };
        const about = await page.evaluate(([n, s]) => globalThis.bench.open(n, s), [name, settings]);
        const measure = () => page.evaluate((w) => globalThis.bench.measure(w), work);
        await measure(); // compiles and warms up
        subjects.push({ names: { model, engine, threads, about }, measure });
        pages.push(page);
      }
      rows.push(...(await alternate(subjects, runs)));
      for (const page of pages) await page.close();
    }
    return { browser: browser.version(), rows };
  });
}
