// Models larger than their tab's memory, in Chromium: compared with computing alone, reading alone and the native
// program. The time to a kept model's first token is measured too.
import { statSync } from 'node:fs';
import { basename } from 'node:path';

import { json, median, modelFiles, qsfBench } from './bench.mjs';
import { inBrowser, memoryFor } from './bench-browser.mjs';

const MiB = 2 ** 20;

/** Budgets in MiB: a third and a fifth of a model, and one that is a tenth. `generate` tokens are measured. */
const subjects = [
  { model: 'smollm-135m/q4_0', budgets: [26, 16], generate: 128, first: true },
  { model: 'llama-7b/q2_0', budgets: [200], generate: 8, native: true },
];

const calling =
  (page, name) =>
  (...args) =>
    page.evaluate(([n, a]) => globalThis.bench[n](...a), [name, args]);

/** Returns the tokens/s of the native program with the same memory and one thread, from the page cache. */
function measureNative(file, budget, generate) {
  const counts = ['--prompt-tokens', '1', '--generate', String(generate), '--runs', '1'];
  const args = ['--model', file, '--threads', '1', '--ram-budget', String(budget), ...counts];
  return json(qsfBench, args).decode.median;
}

async function measureModel({ model, budgets, generate, native, first }, runs, browser) {
  const { qsf } = await modelFiles(model);
  const { size } = statSync(qsf);
  const settings = { qsf: browser.address(basename(qsf)), threads: 1, cache: true };
  const work = { prompt: 1, generate };
  const row = { model, streamed: budgets.map((budget) => ({ budget, rate: [], share: [], native: [] })) };
  if (first) row.firstToken = [];
  const open = async (memory) => {
    const page = await browser.open();
    await calling(page, 'open')('qsf', { ...settings, memory });
    await calling(page, 'measure')(work); // compiles, warms up and keeps the model
    return page;
  };
  if (!native) row.resident = [];
  for (const one of row.streamed) {
    const page = await open(one.budget * MiB);
    // The second page is measured, because the first one keeps the model and would check each read.
    const resident = native ? undefined : await open(memoryFor(qsf));
    for (let i = 0; i < runs; ++i) {
      const { decode, read } = await calling(page, 'measure')(work);
      one.rate.push(decode);
      if (native) one.native.push(decode / measureNative(qsf, one.budget, generate));
      if (!resident) continue;
      const alone = await calling(resident, 'measure')(work);
      const seconds = await calling(resident, 'readAlone')(size, read);
      row.resident.push(alone.decode);
      one.share.push(decode * Math.max(1 / alone.decode, seconds));
    }
    await page.close();
    await resident?.close();
  }
  for (let i = 0; first && i < runs; ++i) {
    const page = await browser.open();
    row.firstToken.push(await calling(page, 'firstToken')({ ...settings, memory: memoryFor(qsf) }));
    await page.close();
  }
  return row;
}

/** Measures all subjects in a browser with a profile on disk, one model after the other. */
export async function measureBrowserStreaming(runs, models) {
  return inBrowser(async (browser) => {
    const rows = [];
    for (const subject of subjects.filter(({ model }) => models?.includes(model) ?? true)) {
      const row = await measureModel(subject, runs, browser);
      for (const { budget, rate, share, native } of row.streamed) {
        const told = share.length > 0 ? ['the slower of reading and computing', share] : ['native', native];
        console.log(
          `${row.model} in ${budget} MiB in Chromium: ${median(rate).toFixed(2)} tokens/s, over ${told[0]} ${median(told[1]).toFixed(2)}`,
        );
      }
      if (row.firstToken) console.log(`${row.model}, kept: first token after ${median(row.firstToken).toFixed(2)} s`);
      rows.push(row);
    }
    return { browser: browser.version(), rows };
  });
}

/** Prints the rate of a model that is streamed from each kind of source, in turns. The address's model is in the browser's cache. */
export async function measureSources(runs, { model = 'smollm-135m/q4_0', budget = 64, generate = 64 } = {}) {
  const { qsf } = await modelFiles(model);
  await inBrowser(async (browser) => {
    const rows = [];
    for (const [from, cache] of [
      ['address', true],
      ['file', true],
      ['file', false],
      ['blob', true],
      ['buffer', true],
    ]) {
      const page = await browser.open();
      await page.setInputFiles('input', qsf);
      const settings = { qsf: browser.address(basename(qsf)), threads: 1, memory: budget * MiB, from };
      await calling(page, 'open')('qsf', { ...settings, cache });
      const measure = () => calling(page, 'measure')({ prompt: 1, generate });
      await measure();
      rows.push({ from: cache ? from : `${from}, not copied`, rate: [], measure });
    }
    for (let i = 0; i < runs; ++i) for (const { rate, measure } of rows) rate.push((await measure()).decode);
    for (const { from, rate } of rows) {
      const over = median(rate) / median(rows[0].rate);
      const all = rate.map((one) => one.toFixed(1)).join(' ');
      console.log(`${from}: ${median(rate).toFixed(2)} tokens/s (${all}), over the address ${over.toFixed(2)}`);
    }
  });
}
