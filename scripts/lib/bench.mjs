// The common part of benchmarks: models of random weights, the machine, repeated and alternating runs, results as JSON.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { basename, join } from 'node:path';

import { buildFolder } from './build.mjs';
import { installLocked } from './npm.mjs';
import { Stop, capture, root, run, which } from './process.mjs';
import { inReference } from './reference.mjs';

/** The folder of results, from which benchmarks.md and quality.md are written. */
export const resultsFolder = inReference('benchmarks');
export const modelsFolder = join(buildFolder('release'), 'models');
const bin = (name) => join(buildFolder('release'), 'bin', name);
export const qsfBench = bin('qsf-bench');

const peersFolder = join(root, 'tests', 'bench');

/** Installs the packages that only benchmarks use. */
export const installPeers = () => installLocked(peersFolder);

/** Returns the GGUF file of `SHAPE/TYPE` or `SHAPE/TYPE/LAYERS` and its conversion. Makes them if they do not exist. */
export async function modelFiles(model) {
  const [shape, type, layers] = model.split('/');
  const cut = layers ? ['--layers', layers] : [];
  const gguf = join(modelsFolder, `${model.replaceAll('/', '-')}.gguf`);
  const qsf = gguf.replace(/gguf$/, 'qsf');
  mkdirSync(modelsFolder, { recursive: true });
  if (!existsSync(gguf)) await run(bin('make-random-model'), [shape, type, gguf, ...cut]);
  if (!existsSync(qsf)) await run(bin('qsf-convert'), [gguf, qsf, '--quiet']);
  return { gguf, qsf };
}

/**
 * Returns llama-bench on PATH, or the command with arguments in LLAMA_BENCH. Returns null, and says so, if there is
 * neither.
 */
export function llamaBench() {
  const words = (process.env.LLAMA_BENCH ?? '').split(' ').filter((word) => word !== '');
  if (words.length > 0) return words;
  if (which('llama-bench')) return ['llama-bench'];
  console.log('llama-bench is not on PATH and LLAMA_BENCH is not set: llama.cpp is left out.');
  return null;
}

/** Returns another program's JSON, with variables added to its environment. */
export function json(command, args, variables = {}) {
  const text = capture(command, args, { env: { ...process.env, ...variables }, maxBuffer: 1 << 28, cwd: root });
  if (text === null) throw new Stop(`${[basename(command), ...args].join(' ')} failed.`);
  return JSON.parse(text.slice(text.search(/[[{]/)));
}

/** The load of the machine before this command built or measured anything. */
const loadAtStart = loadavg()[0];

const gib = (bytes) => Math.round((bytes / 2 ** 30) * 10) / 10;

/** Returns the built commit, marked if sources differ from it. */
function commit() {
  const git = (...args) => capture('git', args, { cwd: root }) ?? '';
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!docs');
  return `${git('rev-parse', '--short', 'HEAD')}${changed ? ', changed' : ''}`;
}

const cpuinfo = '/proc/cpuinfo';

/** Returns the machine and its load. */
export function machine() {
  const processors = cpus();
  return {
    cpu: processors[0].model,
    processors: processors.length,
    memoryGiB: gib(totalmem()),
    avxVnni: /^flags.*\bavx_vnni\b/m.test(existsSync(cpuinfo) ? readFileSync(cpuinfo, 'utf8') : ''),
    kernel: release(),
    compiler: (capture(process.env.CXX || 'c++', ['--version']) ?? '').split('\n')[0],
    commit: commit(),
    date: new Date().toISOString().slice(0, 16),
    load: loadAtStart,
  };
}

/**
 * Measures every subject in turn, `runs` times, so that changes of the machine over time affect all alike. A subject is
 * `{ names, measure }`; measure returns `{ prefill, decode }` in tokens/s. A row has the names, lists of both figures,
 * and the other results of the last measurement.
 */
export async function alternate(subjects, runs) {
  const rows = subjects.map(({ names }) => ({ ...names, prefill: [], decode: [] }));
  for (let i = 0; i < runs; ++i) {
    for (const [at, subject] of subjects.entries()) {
      const { prefill, decode, ...more } = await subject.measure();
      rows[at].prefill.push(prefill);
      rows[at].decode.push(decode);
      Object.assign(rows[at], more);
    }
  }
  for (const row of rows) console.log(line(row));
  return rows;
}

const shown = (values) => `${median(values).toFixed(1)} ±${(spread(values) * 50).toFixed(0)} %`;
const line = ({ model, engine, threads, prefill, decode }) =>
  `${model}  ${engine}, ${threads} thread(s): prefill ${shown(prefill)}, decode ${shown(decode)} tokens/s`;

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns the largest minus the smallest, as a share of the median. */
export const spread = (values) => (Math.max(...values) - Math.min(...values)) / median(values);

export function writeResults(name, results) {
  mkdirSync(resultsFolder, { recursive: true });
  const path = join(resultsFolder, `${name}.json`);
  const command = `npm run ${process.env.npm_lifecycle_event ?? name} -- ${process.argv.slice(3).join(' ')}`;
  const head = { machine: machine(), command: command.replace(/ -- $/, '') };
  const text = JSON.stringify({ ...head, ...results }, null, 1);
  // Each list of numbers is on one line.
  const short = text.replace(/\[\s+([-\d.e+,\s]+?)\s+\]/g, (_, list) => `[${list.replace(/\s+/g, ' ')}]`);
  writeFileSync(path, `${short}\n`);
  console.log(`results: ${path}`);
}

export function readResults(name) {
  const path = join(resultsFolder, `${name}.json`);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
}
