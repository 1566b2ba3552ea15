// The speed of models several times larger than their memory, compared with a plain reader of the file, a control
// group, the page cache, the same model in memory, and the plan's expectation.
import { existsSync, mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs';

import { json, llamaBench, median, modelFiles, qsfBench, spread } from './bench.mjs';
import { Stop, capture } from './process.mjs';

const MiB = 2 ** 20;
const allowance = 12e6; // bytes that a process may use beyond its budget

/**
 * Shapes with budgets of a fifth to a tenth of their weights, or a third for a mixture of experts. The numbers of
 * tokens, past the page cache and from it, take about a second.
 */
const subjects = [
  { model: 'tinyllama-1.1b/q4_0', budget: 120, tokens: { cold: 4, warm: 64 } },
  { model: 'llama-7b/q2_0', budget: 200, tokens: { cold: 2, warm: 16 } },
  // The text is sampled, because a greedy text of random weights soon repeats a token, and with it its experts.
  { model: 'qwen3-30b-a3b/q4_0/4', budget: 560, tokens: { cold: 48, warm: 96 }, more: ['--sample'], experts: true },
];

/** Drops the file from the page cache. */
const forget = (file) => capture('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
/** Brings the file into the page cache. */
const remember = (file) => capture('dd', [`if=${file}`, 'of=/dev/null', 'bs=1M', 'status=none']);

/** Returns the MB/s of dd past the page cache, a MiB at a time. */
function plainReader(file) {
  const begin = process.hrtime.bigint();
  if (capture('dd', [`if=${file}`, 'of=/dev/null', 'bs=1M', 'iflag=direct', 'status=none']) === null)
    throw new Stop(`dd cannot read ${file} past the page cache.`);
  return statSync(file).size / 1e6 / (Number(process.hrtime.bigint() - begin) / 1e9);
}

/** Makes a control group with this many bytes of memory, page cache included. Returns null if that fails. */
function controlGroup(bytes) {
  const kinds = [
    { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes' },
    { root: '/sys/fs/cgroup', limit: 'memory.max' },
  ];
  for (const { root, limit } of kinds) {
    const folder = `${root}/qsf-bench-${process.pid}`;
    try {
      if (!existsSync(`${root}/cgroup.procs`)) continue;
      mkdirSync(folder);
      writeFileSync(`${folder}/${limit}`, String(bytes));
      return folder;
    } catch {
      if (existsSync(folder)) rmdirSync(folder);
    }
  }
  return null;
}

/** Returns a command's JSON, from a run in the control group if one is given. */
const grouped = (group, command, args) =>
  group ? json('sh', ['-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, command, ...args]) : json(command, args);

/**
 * Returns llama.cpp's tokens/s with its file mapped, which is its default. Weights in another order would be a copy in
 * memory.
 */
function measureLlama([command, ...first], file, { threads, group, tokens }) {
  const counts = ['-p', '0', '-n', String(tokens), '-t', String(threads), '-r', '1', '--repack', '0', '--no-warmup'];
  return { rate: grouped(group, command, [...first, '-m', file, ...counts, '-o', 'json'])[0].avg_ts };
}

/** Returns one measurement: tokens/s, MB/s, and the expected tokens/s. */
function measure(file, { budget, tokens, threads, source, group, more = [] }) {
  const counts = ['--prompt-tokens', '1', '--generate', String(tokens), '--runs', '1'];
  const args = ['--model', file, '--threads', String(threads), ...counts, ...more];
  if (budget) args.push('--ram-budget', String(budget));
  if (source) args.push('--source', source);
  const made = grouped(group, qsfBench, args);
  const { bytes_read: read, seconds, median: rate, experts } = made.decode;
  const found = experts && {
    found: experts.found / experts.chosen,
    megabytes: experts.bytes_read / 1e6 / (tokens + 1),
  };
  return { rate, bandwidth: read / 1e6 / seconds.total, expected: made.plan.token_rate, source: made.source, ...found };
}

const quotient = (over, under) => over.map((value, i) => value / under[i]);
const told = (name, values, unit = '') =>
  console.log(`${name}: ${median(values).toFixed(2)} ±${(spread(values) * 50).toFixed(0)} %${unit}`);

/** Measures every subject in turn, `runs` times, so that changes of the machine over time affect all alike. */
export async function measureStreaming(runs, models) {
  const rows = [];
  const llama = llamaBench();
  for (const { model, budget, tokens, more, experts } of subjects.filter(
    ({ model }) => models?.includes(model) ?? true,
  )) {
    const { qsf: file, gguf } = await modelFiles(model);
    const group = controlGroup(budget * MiB + allowance);
    const ways = [
      { name: 'cold', budget, threads: 2, source: 'uring', cold: true },
      ...(group ? [{ name: 'capped', budget, threads: 2, cold: true, group }] : []),
      ...(group && llama ? [{ name: 'llama.cpp, capped', threads: 2, cold: true, group, gguf }] : []),
      { name: 'warm, 1 thread', budget, threads: 1, source: 'pread' },
      { name: 'warm, 2 threads', budget, threads: 2, source: 'pread' },
      { name: 'mapped, 1 thread', budget, threads: 1, source: 'mmap' },
      { name: 'mapped, 2 threads', budget, threads: 2, source: 'mmap' },
      { name: 'resident, 1 thread', threads: 1 },
      { name: 'resident, 2 threads', threads: 2 },
    ];
    const row = {
      model,
      budget,
      ...(experts && { experts }),
      reader: [],
      ways: Object.fromEntries(ways.map(({ name }) => [name, []])),
    };
    for (let i = 0; i < runs; ++i) {
      forget(file);
      row.reader.push(plainReader(file));
      for (const { name, cold, gguf: mapped, ...way } of ways) {
        (cold ? forget : remember)(mapped ?? file);
        way.tokens = cold ? tokens.cold : tokens.warm;
        row.ways[name].push(mapped ? measureLlama(llama, mapped, way) : measure(file, { ...way, more }));
      }
    }
    if (group) rmdirSync(group);
    const of = (name, key) => (row.ways[name] ?? []).map((one) => one[key]);
    row.ratios = {
      'cold over a plain reader': quotient(of('cold', 'bandwidth'), row.reader),
      ...(experts && { 'cold over resident': quotient(of('cold', 'rate'), of('resident, 2 threads', 'rate')) }),
      ...(group && { 'capped over cold': quotient(of('capped', 'bandwidth'), of('cold', 'bandwidth')) }),
      ...(group &&
        llama && { 'capped over llama.cpp, capped': quotient(of('capped', 'rate'), of('llama.cpp, capped', 'rate')) }),
      'warm over resident, 1 thread': quotient(of('warm, 1 thread', 'rate'), of('resident, 1 thread', 'rate')),
      'warm over resident, 2 threads': quotient(of('warm, 2 threads', 'rate'), of('resident, 2 threads', 'rate')),
      'mapped over resident, 2 threads': quotient(of('mapped, 2 threads', 'rate'), of('resident, 2 threads', 'rate')),
      'warm, 2 threads over 1': quotient(of('warm, 2 threads', 'rate'), of('warm, 1 thread', 'rate')),
      'mapped, 2 threads over 1': quotient(of('mapped, 2 threads', 'rate'), of('mapped, 1 thread', 'rate')),
    };
    for (const { name } of ways.filter((way) => !way.gguf))
      row.ratios[`${name}: expected over measured`] = quotient(of(name, 'expected'), of(name, 'rate'));
    console.log(`${model} in ${budget} MiB${group ? '' : ' (no control group can be made here)'}`);
    told('  plain reader', row.reader, ' MB/s');
    for (const name of Object.keys(row.ways)) told(`  ${name}`, of(name, 'rate'), ' tokens/s');
    if (of('cold', 'found')[0] !== undefined) {
      told('  experts found in memory', of('cold', 'found'));
      told('  read of experts for a token', of('cold', 'megabytes'), ' MB');
    }
    for (const [name, values] of Object.entries(row.ratios)) told(`  ${name}`, values);
    rows.push(row);
  }
  return rows;
}
