// The memory of a tab whose model is larger than its budget, while the model is downloaded and when it comes from the cache:
// from /proc, of a browser that nobody drives. What drives one has it record what the network brings, up to 200 MB.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import type { Stats } from '../web/src/index.js';
import { chromiumArgs, chromiumPath } from './chromium.mjs';
import { removeProfile } from './profile.mjs';
import { renderersOf, status } from './processes.js';
import { makeRandomModel } from './random-model.js';
import { TestServer } from './server.js';

const MB = 1e6;
const MiB = 1024 * 1024;
const budget = 200 * MiB;
/** What a tab may take beside its budget: the browser's own, and what is being transferred. */
const beside = 64 * MB;

let server: TestServer;
let model: string;
let folder: string;

test.beforeAll(async () => {
  test.setTimeout(600_000);
  folder = mkdtempSync(join(tmpdir(), 'qsf-memory-'));
  const file = join(folder, 'random.qsf');
  await makeRandomModel(file, 300 * MB);
  server = await TestServer.start();
  model = server.serve('random.qsf', readFileSync(file));
});

test.afterAll(async () => {
  await server.stop();
  await removeProfile(folder);
});

/** Opens the model in a browser of its own; gives its statistics and the most anonymous memory that a tab took. */
async function openAlone(): Promise<{ stats: Pick<Stats, 'io' | 'memory'>; taken: number }> {
  const address = `${server.origin}/alone?${new URLSearchParams({ model, memory: String(budget) }).toString()}`;
  const told = new Promise<unknown>((resolve) => (server.onTold = resolve));
  const options = ['--headless=new', `--user-data-dir=${join(folder, 'profile')}`];
  const browser = spawn(chromiumPath, [...options, ...chromiumArgs, address], { stdio: 'ignore' });
  const ended = new Promise((resolve) => browser.on('exit', resolve));
  let taken = 0;
  const look = setInterval(() => {
    taken = Math.max(taken, ...renderersOf(browser.pid!).map((pid) => 1024 * (status(pid, 'RssAnon') ?? 0)));
  }, 50);
  try {
    const answer = (await told) as Pick<Stats, 'io' | 'memory'> & { error?: string };
    expect(answer.error).toBeUndefined();
    return { stats: answer, taken };
  } finally {
    clearInterval(look);
    browser.kill();
    await ended;
  }
}

test('a model of 300 MB takes no more than its budget of 200 MiB and 64 MB', async () => {
  test.setTimeout(600_000);
  for (const from of ['network', 'cache'] as const) {
    const { stats, taken } = await openAlone();
    expect(stats.memory.wasm).toBe(budget);
    expect(stats.io.cacheState).toBe('complete');
    expect(stats.io.network).toBeGreaterThanOrEqual(from === 'network' ? 300 * MB : 0);
    if (from === 'cache') expect(stats.io.network).toBe(0);
    const more = `${((taken - budget) / MB).toFixed(1)} MB`;
    test.info().annotations.push({ type: `beside the budget, from the ${from}`, description: more });
    console.log(`from the ${from}: ${more} beside the budget`);
    // It was the right process: the pinned weights lie there.
    expect(taken).toBeGreaterThan(0.7 * budget);
    expect(taken - budget).toBeLessThan(beside);
  }
});
