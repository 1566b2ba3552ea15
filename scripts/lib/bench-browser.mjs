// Engines in Chromium, each in a page of its own that stays open.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { chromiumArgs, chromiumPath } from '../../tests/e2e/chromium.mjs';
import { alternate, modelFiles, modelsFolder } from './bench.mjs';
import { serveBench } from './bench-server.mjs';
import { variants } from './build.mjs';

/** A page that is not in front computes as fast as one that is. */
const inBackground = ['--disable-background-timer-throttling', '--disable-renderer-backgrounding'];

/** The whole model, and room for a short context. */
const memoryFor = (qsf) => Math.ceil(statSync(qsf).size * 1.1) + 256 * 2 ** 20;

/** QSF in each of its builds, and the peers. */
const own = variants.map((variant) => ({ engine: `qsf ${variant}`, name: 'qsf', variant }));
const peers = [
  { engine: 'wllama 2.4.0', name: 'wllama-2' },
  { engine: 'wllama 3.8.1', name: 'wllama-3' },
];

/** Measures models in Chromium; with the peers beside QSF when asked. Gives the rows and the browser's version. */
export async function measureBrowser({ models, threads, runs, work, withPeers = false }) {
  // Late, so that commands without a browser need none.
  const { chromium } = await import('@playwright/test');
  const server = await serveBench(modelsFolder);
  const profile = mkdtempSync(join(tmpdir(), 'qsf-bench-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    args: [...chromiumArgs, ...inBackground],
  });
  const rows = [];
  try {
    for (const model of models) {
      const files = await modelFiles(model);
      const subjects = [];
      const pages = [];
      for (const { engine, name, variant } of withPeers ? [...own, ...peers] : own) {
        const page = await context.newPage();
        page.on('pageerror', (error) => console.error(`${engine}: ${error}`));
        await page.goto(server.origin);
        await page.waitForFunction(() => 'bench' in globalThis);
        const address = (path) => `${server.origin}/models/${basename(path)}`;
        const [gguf, qsf] = [address(files.gguf), address(files.qsf)];
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
    return { browser: `Chromium ${context.browser()?.version() ?? ''}`.trim(), rows };
  } finally {
    await context.close();
    await server.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
