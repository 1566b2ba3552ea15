// The demo's pages as Lighthouse audits them. Its score of performance is a matter of the machine and not asked for; what
// moves while a page loads is.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from '@playwright/test';

import { chromiumArgs, chromiumPath } from './chromium.mjs';
import { Demo } from './demo.js';

const lighthouse = fileURLToPath(new URL('node_modules/.bin/lighthouse', import.meta.url));

interface Result {
  categories: Record<string, { score: number | null; auditRefs: { id: string; weight: number }[] }>;
  audits: Record<string, { score: number | null; title: string; numericValue?: number }>;
  runtimeError?: { message: string };
}

/** How often a browser's trace may be lost, of which Lighthouse itself says that it is to be run again (NO_NAVSTART). */
const LOST_TRACES = 2;

async function audit(address: string, ...options: string[]): Promise<Result> {
  for (let lost = 0; ; lost++) {
    try {
      return await auditOnce(address, ...options);
    } catch (error) {
      if (lost === LOST_TRACES || !String(error).includes('Please run Lighthouse again')) throw error;
    }
  }
}

async function auditOnce(address: string, ...options: string[]): Promise<Result> {
  const flags = `--chrome-flags=--headless=new ${chromiumArgs.join(' ')}`;
  const { stdout } = await promisify(execFile)(
    lighthouse,
    [address, '--quiet', '--output=json', '--output-path=stdout', flags, ...options],
    { env: { ...process.env, CHROME_PATH: chromiumPath }, maxBuffer: 1 << 26 },
  );
  return JSON.parse(stdout) as Result;
}

let demo: Demo;
test.beforeAll(async () => {
  demo = await Demo.start();
});
test.afterAll(async () => {
  await demo.stop();
});

for (const page of ['', 'retrieval.html', 'examples.html']) {
  for (const [screen, ...options] of [['phone'], ['desktop', '--preset=desktop']] as const) {
    test(`Lighthouse finds nothing amiss at /${page} (${screen})`, async () => {
      const { categories, audits, runtimeError } = await audit(`${demo.address}${page}`, ...options);
      expect(runtimeError?.message).toBeUndefined();
      for (const name of ['accessibility', 'best-practices', 'seo']) {
        const refs = categories[name]!.auditRefs.filter(({ weight }) => weight > 0);
        const amiss = refs.map(({ id }) => audits[id]!).filter(({ score }) => score !== null && score < 1);
        expect(amiss.map(({ title }) => title)).toEqual([]);
        expect(categories[name]!.score).toBe(1);
      }
      expect(audits['cumulative-layout-shift']!.numericValue).toBeLessThan(0.02);
    });
  }
}
