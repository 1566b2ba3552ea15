#!/usr/bin/env node
// Writes benchmarks.md from the results of bench.mjs.
import { writeFileSync } from 'node:fs';

import { claims } from './lib/bench-claims.mjs';
import { median, readResults, spread } from './lib/bench.mjs';
import { main } from './lib/process.mjs';
import { inReference } from './lib/reference.mjs';

const results = Object.fromEntries(
  ['kernels', 'browser', 'peers', 'streaming'].map((name) => [name, readResults(name)]),
);

/** Returns a table. Columns of figures are aligned right. */
function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const isFigure = (cell) => cell === '' || /^[\d*]/.test(String(cell));
  const rule = head.map((_, i) => (rows.every((row) => isFigure(row[i])) ? '--:' : '---'));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}

const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
/** Returns a median, and half of the runs' range as a share of it. */
const figure = (values) => `${digits(median(values))} ±${(spread(values) * 50).toFixed(0)} %`;
const percent = (share) => `${(share * 100).toFixed(0)} %`;

function setting() {
  const rows = Object.entries(results).flatMap(([name, made]) => {
    if (!made) return [];
    const { cpu, processors, memoryGiB, kernel, compiler, commit, date, load } = made.machine;
    const busy = load > 0.7 ? `**busy: load ${load.toFixed(1)}**` : 'idle';
    return [
      [
        name,
        `\`${made.command.replaceAll('|', '\\|')}\``,
        `${cpu}, ${processors} cores, ${memoryGiB} GiB, Linux ${kernel}`,
        compiler,
        commit,
        date,
        busy,
      ],
    ];
  });
  return table(['results', 'command', 'machine', 'compiler', 'commit', 'date', 'the machine was'], rows);
}

const rates = ({ model, engine, threads, prefill, decode }) => [
  `${engine}`,
  model,
  threads,
  figure(prefill),
  figure(decode),
];
const rateHead = ['engine', 'model', 'threads', 'prefill tokens/s', 'decode tokens/s'];

/** Returns the division of the time of QSF's runs, as shares. */
function breakdown(rows) {
  const works = Object.keys(rows[0].seconds.decode).filter((key) => !['total', 'beside'].includes(key));
  const line = ({ model, threads, seconds, peakBytes, budget }, what) => [
    `${model}, ${what}`,
    threads,
    ...works.map((work) => percent(seconds[what][work] / seconds[what].total)),
    (peakBytes / 2 ** 20).toFixed(0),
    (budget / 2 ** 20).toFixed(0),
  ];
  const lines = rows.flatMap((row) => ['prefill', 'decode'].map((what) => line(row, what)));
  return table(['run', 'threads', ...works, 'peak MiB', 'budget MiB'], lines);
}

function native() {
  if (!results.peers) return 'Not measured yet.';
  const { native: rows, prompts, work } = results.peers;
  const llama = rows.find(({ build }) => build);
  const own = rows.filter(({ engine, seconds }) => engine === 'qsf' && seconds);
  return [
    `${work.prompt} tokens of prefill, ${work.generate} of decode, each from an empty context. ${llama ? `llama.cpp: build ${llama.build}, ${llama.backends}.` : ''}`,
    table(rateHead, rows.map(rates)),
    'Time of the last run by kind of work, and its peak resident memory:',
    own.length > 0 ? breakdown(own) : '',
    'Long prompts:',
    table(
      ['engine', 'model', 'tokens', 'tokens/s'],
      (prompts ?? []).map(({ engine, model, prompt, prefill }) => [engine, model, prompt, figure(prefill)]),
    ),
  ].join('\n\n');
}

function browser() {
  const tables = ['peers', 'browser'].flatMap((name) => {
    const made = name === 'peers' ? results.peers?.browser : results.browser;
    if (!made?.rows) return [];
    const { browser: version, rows } = made;
    const beside = name === 'peers' ? ', side by side with wllama' : ', alone';
    return [`${version}${beside}:`, table(rateHead, rows.map(rates))];
  });
  return tables.length > 0 ? tables.join('\n\n') : 'Not measured yet.';
}

function streaming() {
  if (!results.streaming) return 'Not measured yet.';
  const { rows } = results.streaming;
  const names = [...new Set(rows.flatMap(({ ways }) => Object.keys(ways)))];
  const of = (row, name, key) => (row.ways[name] ?? []).map((one) => one[key]).filter((value) => value !== undefined);
  const cells = (name) => rows.map((row) => (of(row, name, 'rate').length > 0 ? figure(of(row, name, 'rate')) : ''));
  const predicted = (name) =>
    rows.map(({ ratios }) =>
      (ratios[`${name}: expected over measured`] ?? []).map((value) => value.toFixed(2)).join(' '),
    );
  const head = rows.map(({ model, budget }) => `${model} in ${budget} MiB`);
  const own = names.filter((name) => predicted(name).some((cell) => cell !== ''));
  const experts = rows.filter((row) => row.experts);
  return [
    'Tokens a second. *Cold* reads bypass the page cache (io_uring). *Capped* runs in a control group of the budget and 12 MB, from a file that no cache holds. *Warm* reads come from the page cache.',
    table(
      ['way', ...head],
      [
        ['plain reader, MB/s', ...rows.map(({ reader }) => figure(reader))],
        ...names.map((name) => [name, ...cells(name)]),
      ],
    ),
    'Expected speed, computed before any weight is read, divided by the measured speed, for each run:',
    table(
      ['way', ...head],
      own.map((name) => [name, ...predicted(name)]),
    ),
    ...(results.streaming.browser ? streamingInBrowser(results.streaming.browser) : []),
    ...experts.map(
      (row) =>
        `${row.model}, cold: ${percent(median(of(row, 'cold', 'found')))} of the selected experts were in memory; each token read ${figure(of(row, 'cold', 'megabytes'))} MB of the others.`,
    ),
  ].join('\n\n');
}

/** Returns the section on models that are larger than their tab's memory. */
function streamingInBrowser({ browser: version, rows }) {
  const lines = rows.flatMap(({ model, streamed, resident }) =>
    streamed.map(({ budget, rate, share, native }) => [
      model,
      budget,
      figure(rate),
      resident ? figure(resident) : '',
      share.length > 0 ? figure(share) : '',
      native.length > 0 ? figure(native) : '',
    ]),
  );
  const first = rows.filter((row) => row.firstToken);
  return [
    `${version}, one thread, from its private file system in a profile on disk. The share is relative to the slower of computing alone and reading alone with a bare handle.`,
    table(['model', 'MiB', 'tokens/s', 'resident', 'share', 'over native'], lines),
    ...first.map(
      (row) =>
        `${row.model}, in the browser's cache: first token ${figure(row.firstToken)} s after the call of load().`,
    ),
  ];
}

/** Returns the list of the row with this name, given in parts. */
function kernel(...parts) {
  return results.kernels?.rows.find(({ name }) => parts.every((part) => `/${name}/`.includes(`/${part}/`)));
}

const cell = (row, key) => (row?.[key] ? digits(median(row[key])) : '');

function kernels() {
  if (!results.kernels) return 'Not measured yet.';
  const { rows } = results.kernels;
  const products = rows.filter(({ name }) => name.startsWith('matmul/')).map(({ name }) => name.split('/'));
  const pairs = [...new Set(products.map(([, format, isa]) => `${format}/${isa}`))];
  const columns = [1, 4, 8, 32, 128];
  const lines = pairs.map((pair) => {
    const at = (n, threads = 1) => kernel(`matmul/${pair}`, '4096x4096/memory', `columns:${n}`, `threads:${threads}`);
    const two = rows.find(
      ({ name }) => name.startsWith(`matmul/${pair}/4096x4096/memory/columns:1/threads:`) && !name.endsWith(':1'),
    );
    const four = at(4)?.real_time && at(1)?.real_time ? digits(median(at(4).real_time) / median(at(1).real_time)) : '';
    return [
      pair,
      at(1) ? figure(at(1)['GB/s']) : '',
      at(1)?.share ? percent(median(at(1).share)) : '',
      two?.share ? percent(median(two.share)) : '',
      cell(kernel(`matmul/${pair}`, 'l2', 'columns:1'), 'GB/s'),
      ...columns.map((n) => cell(at(n), 'GMAC/s')),
      four,
    ];
  });
  const head = ['format/isa', 'GB/s from memory', 'share', 'share, all threads', 'GB/s from L2'];
  const others = rows.filter(({ name }) => /^(quantize_columns|attend)\//.test(name));
  return [
    'Products of 4096 x 4096 weights. GB/s counts the weights. The share is relative to the read bandwidth of this machine at that moment, with the same number of threads.',
    table([...head, ...columns.map((n) => `GMAC/s, ${n} col.`), 'time of 4 col. / 1'], lines),
    'Attention of one head over cached positions, and the rounding of activations:',
    table(
      ['kernel', 'µs', 'GB/s'],
      others.map((row) => [row.name, digits(median(row.real_time) / 1000), cell(row, 'GB/s')]),
    ),
  ].join('\n\n');
}

const text = () => `# Benchmarks

\`npm run bench:report\` writes this page from the results in [benchmarks/](benchmarks), and \`npm run bench:page\` plots them.
Figures are medians of alternating runs with half of their range, on one thread unless the row states another number. Models have
random weights in the shapes of known models (\`make-random-model\`), so that every engine reads the same file. Benchmarks are never
tests. Measurements of single changes are in [notes](../notes).

${setting()}

## Goals

${table(['work', 'at least', 'measured', ''], claims(results).goals)}

## Native

${native()}

## In the browser

${browser()}

wllama 2.4.0 is measured by its own benchmark inside its WebAssembly, wllama 3.8.1 by the timings of a completion, and QSF by its
worker's clock.

## Larger than memory

${streaming()}

## Kernels

${kernels()}

## Claims about fused products

A fused product multiplies 4-bit K-blocks directly; a separate product widens them to floats first. Both use AVX2.

${table(['claim', 'falsified when', 'measured', 'verdict'], claims(results).hypotheses)}

## How to measure

| command | what it measures | options |
|---|---|---|
| \`npm run bench\` | QSF in Chromium, both WebAssembly builds | \`--model SHAPE/TYPE\`, \`--threads N\`, \`--runs N\` |
| \`npm run bench:peers\` | QSF next to llama.cpp's \`llama-bench\` (on PATH, or the command in \`LLAMA_BENCH\`) and wllama | the same, \`--native\` |
| \`npm run bench:streaming\` | models several times their budget, next to llama.cpp under the same control group | \`--model SHAPE/TYPE\`, \`--runs N\` |
| \`npm run bench:sources\` | a model that is streamed from an address, a file, a Blob and an ArrayBuffer in Chromium | \`--model SHAPE/TYPE\`, \`--runs N\` |
| \`npm run bench:kernels\` | kernels one by one | \`--filter REGEX\`, \`--min-time SECONDS\`, \`--runs N\` |
| \`build/bin/qsf-bench --model FILE.qsf\` | prefill and decode with the time by kind of work, as JSON | \`--help\` |
| \`build/bin/qsf-bench\` | kernels, with Google Benchmark's options | \`--help\` |
| \`build/bin/make-random-model SHAPE TYPE OUT.gguf\` | makes a model | \`--layers N\`, \`--seed N\` |

Options follow two dashes: \`npm run bench:peers -- --threads 2\`. In the table of time by kind of work, *waiting* is time without
anything to compute and *host* is the program's time between steps. Reading and unpacking run on a thread of their own and are not in
the table.
`;

await main(() => {
  const path = inReference('benchmarks.md');
  writeFileSync(path, text());
  console.log(`written: ${path}`);
});
