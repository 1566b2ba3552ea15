#!/usr/bin/env node
// Sets up, builds and runs every test. The first part that fails ends the run with its log. Words after the command, as
// in `npm test -- arm browsers`, choose the parts whose titles contain one of them; `npm test -- quick` runs the quick
// ones. With --with-needs, the parts that those need run too; with --keep-going, a failure only skips the parts
// that need the part that failed; --minutes=N ends a run that takes longer, with the logs of what still runs; --jobs
// only prints, as JSON, titles whose jobs together cover every part.
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { buildFolder, buildModules, buildPreset, buildPrograms, buildWasm, convertModel } from './lib/build.mjs';
import { compilerCache } from './lib/compiler-cache.mjs';
import { cache } from './lib/emscripten.mjs';
import { installLocked } from './lib/npm.mjs';
import { Stop, elapsed, endAll, main, root, run, runTool } from './lib/process.mjs';
import { Report, logs } from './lib/report.mjs';
import { googleTestResults, playwrightResults, vitestResults } from './lib/results.mjs';
import { clangTidy } from './lib/tidy.mjs';
import { clangFormat, typeScript } from './lint.mjs';
import { setUp } from './setup.mjs';

/**
 * Runs the GoogleTest programs of a build: WebAssembly in Node, ARM under qemu, Windows under wine. Tests that build copies
 * of the sources use the compiler cache.
 */
async function ctest(preset, ...options) {
  rmSync(join(buildFolder(preset), 'results'), { recursive: true, force: true });
  const env = { ...process.env, ...compilerCache(cache) };
  await run('ctest', ['--preset', preset, '-j', String(availableParallelism()), ...options], { name: 'ctest', env });
}

const cases = (preset) => () => googleTestResults(join(buildFolder(preset), 'results'));

/** Runs Vitest's tests, or those of a separate configuration. */
async function vitest(name, ...options) {
  const report = join(logs, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  await runTool('vitest', ['run', ...options, ...reporters]);
}

const vitestCases = (name) => () => vitestResults(join(logs, `${name}.json`));

/** Runs the end-to-end tests of a project of playwright.config.ts. */
async function playwright(project, ...options) {
  await installLocked(join(root, 'e2e'));
  const env = { ...process.env, PLAYWRIGHT_JSON_OUTPUT_NAME: join(logs, `${project}.json`), CI: '1' };
  await runTool('playwright', ['test', '--project', project, '--reporter=list,json', ...options], { env });
}

/** The tests with several threads: the session, the hosts' sources of bytes, and the threads themselves. */
const threaded = {
  tests: '^(engine|native|threads)(-2)?$',
  targets: ['test_engine', 'test_native', 'test_threads'],
};

/**
 * The tests that depend on the system: files, threads, programs, vectors on the stack. The bits of models and of
 * converted files are compared with those of other systems.
 */
const onWindows = {
  tests: '^((kernels|native)(-2)?|kernel-symbols|file|threads|system)$',
  targets: ['kernels', 'file', 'threads', 'system', 'native'].map((room) => `test_${room}`),
};

/** Runs the examples. They need the package, the built-in model, and the native program for the expected stories. */
async function examples() {
  await buildPrograms('qsf-run', 'qsf-convert');
  await convertModel();
  await buildModules();
  await vitest('examples', '--config', 'tests/examples/vitest.config.ts');
}

/** Checks the package as registries and TypeScript see it. */
async function checkPackage() {
  await buildModules();
  await installLocked(join(root, 'tests', 'package'));
  await vitest('package', '--config', 'tests/package/vitest.config.ts');
}

/** Runs the tests of the adapters with the published packages that they are for. */
async function adapters() {
  await installLocked(join(root, 'tests', 'adapters'));
  await vitest('adapters', '--config', 'tests/adapters/vitest.config.ts');
}

const types = 'Types and layout of the TypeScript';
const native = 'Native build, with benchmarks';
const model = 'Built-in model';
const wasm = 'WebAssembly build';
const sanitized = 'Build with AddressSanitizer and UBSan by Clang, fuzzers too';
const threadSanitized = 'Build with ThreadSanitizer';
const arm = 'ARM build';
const windows = 'Windows build';

/**
 * Every part. `quick` is true for the parts of a quick run, or a body that replaces the whole one there.
 * @type {(import('./lib/report.mjs').Part & { quick?: true | (() => Promise<void>) })[]}
 */
const parts = [
  { title: native, body: () => buildPreset('release', { tests: true, bench: true }), quick: true },
  { title: types, body: () => typeScript(), quick: true },
  { title: 'Layout of the C++', body: () => clangFormat(), quick: true },
  {
    title: 'TypeScript unit tests and structure (Vitest)',
    body: () => vitest('vitest'),
    results: vitestCases('vitest'),
    quick: true,
  },
  {
    title: 'Adapters with the published packages (Vitest)',
    body: adapters,
    results: vitestCases('adapters'),
    needs: [types], // which installs the packages too
    quick: true,
  },
  { title: wasm, body: () => buildWasm({ tests: true }), quick: buildModules },
  { title: model, body: convertModel, needs: [native], quick: true },
  {
    title: 'Native tests',
    body: () => ctest('release'),
    results: cases('release'),
    needs: [native],
    quick: () => ctest('release', '-E', '-toy$|^install$|^native'),
  },
  { title: 'Likely mistakes in the C++ (clang-tidy)', body: clangTidy },
  { title: 'WebAssembly tests in Node', body: () => ctest('wasm'), results: cases('wasm'), needs: [wasm] },
  { title: sanitized, body: () => buildPreset('asan', { tests: true }) },
  {
    title: 'Tests with AddressSanitizer and UBSan',
    body: () => ctest('asan'),
    results: cases('asan'),
    needs: [sanitized],
  },
  { title: arm, body: () => buildPreset('aarch64', { tests: true }) },
  { title: 'ARM tests under qemu', body: () => ctest('aarch64'), results: cases('aarch64'), needs: [arm] },
  { title: threadSanitized, body: () => buildPreset('tsan', { tests: true, targets: threaded.targets }) },
  {
    title: 'Tests with ThreadSanitizer',
    body: () => ctest('tsan', '-R', threaded.tests),
    results: cases('tsan'),
    needs: [threadSanitized],
  },
  {
    title: windows,
    body: () => buildPreset('windows', { tests: true, targets: [...onWindows.targets, 'logits-hash', 'qsf-convert'] }),
  },
  {
    title: 'Windows tests under wine',
    body: () => ctest('windows', '-R', onWindows.tests),
    results: cases('windows'),
    needs: [windows],
  },
  {
    title: 'The same bits everywhere',
    body: () => vitest('parity', '--config', 'tests/parity/vitest.config.ts'),
    results: vitestCases('parity'),
    // Only one program may make the prefix of wine, and the tests on Windows make it.
    needs: [native, wasm, sanitized, arm, windows, 'Windows tests under wine'],
  },
  {
    title: 'The npm package, as it is published',
    body: checkPackage,
    results: vitestCases('package'),
    needs: [wasm],
  },
  {
    title: 'The npm package in bundlers, browsers and Node (examples)',
    body: examples,
    results: vitestCases('examples'),
    needs: [native, wasm, model, 'The npm package, as it is published'], // both write dist/
  },
  {
    title: 'Browsers, end to end (Playwright)',
    body: () => playwright('together'),
    results: () => playwrightResults(join(logs, 'together.json')),
    needs: [native, wasm, model],
    alone: true,
    quick: () => playwright('together', 'generate.spec.ts'),
  },
  {
    title: 'Browsers one at a time (Playwright)',
    body: () => playwright('alone'),
    results: () => playwrightResults(join(logs, 'alone.json')),
    needs: [native, wasm, model],
    alone: true,
  },
];

const options = ['--with-needs', '--keep-going', '--jobs'];
const limit = /^--minutes=([0-9]+)$/;

/** Returns the parts that the words of a command line name. */
function chosenParts(words) {
  if (words.length === 0) return parts;
  const named = ({ title }) => words.some((word) => title.toLowerCase().includes(word));
  const quickly = (part) => (part.quick === true ? part : { ...part, body: part.quick });
  const chosen = words.includes('quick') ? parts.filter(({ quick }) => quick).map(quickly) : parts.filter(named);
  if (chosen.length === 0) throw new Stop(`No part's title holds ${words.join(' or ')}.`);
  return chosen;
}

/** Returns the parts with all that they need, in the table's order. */
function withNeeds(chosen) {
  const titles = new Set(chosen.map(({ title }) => title));
  for (const { title, needs = [] } of parts.toReversed())
    if (titles.has(title)) needs.forEach((need) => titles.add(need));
  return parts.filter(({ title }) => titles.has(title));
}

/** Returns the titles of the parts that no other part needs. */
function jobs() {
  const needed = new Set(parts.flatMap(({ needs = [] }) => needs));
  return parts.map(({ title }) => title).filter((title) => !needed.has(title));
}

await main(async () => {
  const start = performance.now();
  const words = process.argv.slice(2).map((word) => word.toLowerCase());
  if (words.includes('--jobs')) {
    console.log(JSON.stringify(jobs()));
    return;
  }
  const unknown = words.find((word) => word.startsWith('--') && !options.includes(word) && !limit.test(word));
  if (unknown) throw new Stop(`${unknown} is none of ${options.join(', ')}, --minutes=N.`);
  const named = chosenParts(words.filter((word) => !word.startsWith('--')));
  const chosen = words.includes('--with-needs') ? withNeeds(named) : named;
  console.log('== Set-up');
  await setUp({ tests: true, bench: true });
  console.log(`   ok after ${elapsed(start)}`);
  const report = new Report();
  const minutes = words.map((word) => limit.exec(word)?.[1]).find(Boolean);
  if (minutes) {
    const tooLong = () => {
      endAll();
      report.printRunning();
      report.end();
      console.log(`The run is ended after ${minutes} minutes.`);
      process.exit(1);
    };
    setTimeout(tooLong, Math.max(0, minutes * 60_000 - (performance.now() - start))).unref();
  }
  if (!(await report.run(chosen, { keepGoing: words.includes('--keep-going') }))) process.exitCode = 1;
  report.end();
});
