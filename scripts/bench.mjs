#!/usr/bin/env node
// bench.mjs browser | peers | kernels | streaming [options] measures and writes JSON; bench-report.mjs writes
// benchmarks.md from it. `bench.mjs sources` only prints. These are not tests: no figure makes a run fail.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import {
  alternate,
  installPeers,
  json,
  llamaBench,
  modelFiles,
  modelsFolder,
  qsfBench,
  writeResults,
} from './lib/bench.mjs';
import { measureBrowser } from './lib/bench-browser.mjs';
import { longPrompts } from './lib/bench-claims.mjs';
import { measureBrowserStreaming, measureSources } from './lib/bench-streaming-browser.mjs';
import { measureStreaming } from './lib/bench-streaming.mjs';
import { buildBench, buildWasm } from './lib/build.mjs';
import { buildPackage } from './lib/package.mjs';
import { Stop, capture, main, run } from './lib/process.mjs';
import { setUp } from './setup.mjs';

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    model: { type: 'string', multiple: true }, // SHAPE/TYPE of make-random-model
    runs: { type: 'string', default: '5' },
    threads: { type: 'string', multiple: true }, // counts, each measured
    prompt: { type: 'string', default: '128' },
    generate: { type: 'string', default: '64' },
    filter: { type: 'string' }, // for kernels; Google Benchmark's filter
    native: { type: 'boolean', default: false }, // for peers and streaming: without the browser
    'min-time': { type: 'string', default: '0.2' }, // for kernels, in seconds
  },
});
const runs = Number(options.runs);
const threadCounts = (options.threads ?? ['1']).map(Number);
const work = { prompt: Number(options.prompt), generate: Number(options.generate) };

const browserModels = options.model ?? ['smollm-135m/q4_0'];
const nativeModels = options.model ?? [
  'smollm-135m/q4_0',
  'smollm-135m/q4_k_m',
  'tinyllama-1.1b/q4_0',
  'tinyllama-1.1b/q4_k_m',
];

async function buildForBrowser() {
  await buildWasm();
  await buildPackage();
}

/** Measures in Chromium, with each number of threads. */
async function inBrowser(withPeers) {
  await buildForBrowser();
  const rows = [];
  let name = '';
  for (const threads of threadCounts) {
    const measured = await measureBrowser({ models: browserModels, threads, runs, work, withPeers });
    name = measured.browser;
    rows.push(...measured.rows);
  }
  return { browser: name, rows };
}

const browser = async () => writeResults('browser', { work, runs, ...(await inBrowser(false)) });

/** Returns the rates of one run of qsf-bench, which warms up first, as llama-bench does. */
function measureQsf(model, threads, isa, { prompt, generate } = work) {
  const counts = ['--prompt-tokens', String(prompt), '--generate', String(generate), '--runs', '1'];
  const args = ['--model', model, '--threads', String(threads), ...counts];
  const made = json(qsfBench, args, isa ? { QSF_ISA: isa } : {});
  const { prefill, decode, peak_resident_bytes: peakBytes, isa: used, plan } = made;
  const seconds = { prefill: prefill.seconds, decode: decode.seconds };
  return { prefill: prefill.median, decode: decode.median, isa: used, budget: plan.budget, peakBytes, seconds };
}

function measureLlama([command, ...args], gguf, threads, { prompt, generate } = work) {
  const counts = ['-p', String(prompt), '-n', String(generate), '-t', String(threads), '-r', '1'];
  const tests = json(command, [...args, '-m', gguf, ...counts, '-o', 'json']);
  const rate = (key) => tests.find((test) => test[key] > 0).avg_ts;
  const { build_commit: commit, build_number: number, backends } = tests[0];
  return { prefill: rate('n_prompt'), decode: rate('n_gen'), build: `${commit} ${number}`, backends };
}

/** Returns rows of a file that several engines read, each [its name, its measurement]. */
const beside = (names, engines) =>
  alternate(
    engines.map(([engine, measure]) => ({ names: { ...names, engine }, measure })),
    runs,
  );

/** Measures long prompts with one thread. */
async function prompts(llama) {
  const rows = [];
  for (const { model, prompt } of longPrompts.filter(({ model }) => nativeModels.includes(model))) {
    const { gguf, qsf } = await modelFiles(model);
    const long = { prompt, generate: 1 };
    const engines = [
      ['qsf', () => measureQsf(qsf, 1, undefined, long)],
      ...(llama ? [['llama.cpp', () => measureLlama(llama, gguf, 1, long)]] : []),
    ];
    rows.push(...(await beside({ model, threads: 1, prompt }, engines)));
  }
  return rows;
}

async function peers() {
  await installPeers();
  const llama = llamaBench();
  const native = [];
  for (const model of nativeModels) {
    const { gguf, qsf } = await modelFiles(model);
    for (const threads of threadCounts) {
      const qsfIn = (isa) => () => measureQsf(qsf, threads, isa);
      // The comparison for the browser's relaxed and plain SIMD.
      const isas = process.arch === 'x64' ? ['avx2', ...(browserModels.includes(model) ? ['sse41'] : [])] : [];
      const engines = [
        ['qsf', qsfIn()],
        ...isas.map((isa) => [`qsf ${isa}`, qsfIn(isa)]),
        ...(llama ? [['llama.cpp', () => measureLlama(llama, gguf, threads)]] : []),
      ];
      native.push(...(await beside({ model, threads }, engines)));
    }
  }
  const results = { work, runs, native, prompts: await prompts(llama) };
  if (!options.native) results.browser = await inBrowser(true);
  writeResults('peers', results);
}

/**
 * Returns a filter for every format on this machine's best instruction set, the claims about fused products, attention
 * and rounding.
 */
function defaultFilter() {
  const names = capture(qsfBench, ['--benchmark_list_tests']).split('\n');
  const best = names.findLast((name) => name.startsWith('matmul/')).split('/')[2];
  return `^(read|h[0-9]|matmul/[^/]+/${best}/|attend/[^/]+/${best}/|quantize_columns/)`;
}

/** Joins Google Benchmark's repetitions of one name to one row of lists. */
function rowsOf(report) {
  const rows = new Map();
  const ignored =
    /^(name|family_index|per_family_instance_index|run_name|run_type|repetition.*|threads|iterations|cpu_time|time_unit)$/;
  for (const entry of report.benchmarks) {
    if (entry.run_type !== 'iteration') continue;
    const name = entry.run_name.replace(/\/(real_time|iterations:1)$/g, '');
    const row = rows.get(name) ?? { name };
    rows.set(name, row);
    for (const [key, value] of Object.entries(entry)) {
      if (!ignored.test(key)) (row[key] ??= []).push(Number(value.toPrecision(5)));
    }
  }
  return [...rows.values()];
}

async function kernels() {
  const out = join(modelsFolder, '..', 'kernels.json');
  const repeat = [`--benchmark_repetitions=${runs}`, '--benchmark_report_aggregates_only=false'];
  const filter = options.filter ?? defaultFilter();
  const to = [`--benchmark_out=${out}`, '--benchmark_out_format=json'];
  await run(qsfBench, [
    `--benchmark_filter=${filter}`,
    `--benchmark_min_time=${options['min-time']}`,
    ...repeat,
    ...to,
  ]);
  const report = JSON.parse(readFileSync(out, 'utf8'));
  rmSync(out);
  writeResults('kernels', { runs, filter, caches: report.context.caches, rows: rowsOf(report) });
}

async function streaming() {
  const results = { runs, rows: await measureStreaming(runs, options.model) };
  if (!options.native) {
    await buildForBrowser();
    results.browser = await measureBrowserStreaming(runs, options.model);
  }
  writeResults('streaming', results);
}

async function sources() {
  await buildForBrowser();
  await measureSources(runs, { model: options.model?.[0] });
}

const commands = { browser, peers, kernels, streaming, sources };

await main(async () => {
  const command = commands[positionals[0]];
  if (!command || positionals.length > 1)
    throw new Stop(`usage: bench.mjs ${Object.keys(commands).join(' | ')} [options]`);
  await setUp({ bench: true });
  await buildBench();
  await command();
});
