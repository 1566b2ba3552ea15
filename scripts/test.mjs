#!/usr/bin/env node
// Sets up, builds and runs every test. The first part that fails ends the run with its log. Words after the command, as in
// `npm test -- arm browsers`, choose the parts whose titles hold one of them.
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import {
  buildFolder,
  buildModules,
  buildPreset,
  buildPrograms,
  buildWasm,
  convertModel,
  testedRooms,
  wasmBuilds,
} from './lib/build.mjs';
import { installLocked } from './lib/npm.mjs';
import { Stop, elapsed, main, root, run, runTool } from './lib/process.mjs';
import { Report, countGoogleTest, countPlaywright, countVitest, logs } from './lib/report.mjs';
import { clangFormat, clangTidy, typeScript } from './lint.mjs';
import { setUp } from './setup.mjs';

/** Runs the GoogleTest programs of a build; as WebAssembly they run in Node, for ARM under qemu, for Windows under wine. */
async function ctest(preset, ...options) {
  const folder = buildFolder(preset);
  rmSync(join(folder, 'results'), { recursive: true, force: true });
  const jobs = String(availableParallelism());
  const fixed = ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--timeout', '1800', '-j', jobs];
  await run('ctest', [...fixed, ...options], { name: 'ctest' });
}

const cases = (preset) => () => countGoogleTest(join(buildFolder(preset), 'results'));

/** Runs Vitest's tests, or those of a configuration of their own. */
async function vitest(name, ...options) {
  const report = join(logs, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  await runTool('vitest', ['run', ...options, ...reporters]);
}

const vitestCases = (name) => () => countVitest(join(logs, `${name}.json`));

async function playwright() {
  await installLocked(join(root, 'tests', 'e2e'));
  const env = { ...process.env, PLAYWRIGHT_JSON_OUTPUT_NAME: join(logs, 'playwright.json'), CI: '1' };
  await runTool('playwright', ['test', '--reporter=list,json'], { env });
}

/** Where threads meet: the hosts' threads and the session, and the programs that those tests start. */
const threaded = {
  tests: '^(engine|native|threads)(-2)?$',
  targets: ['test_engine', 'test_native', 'test_threads', 'qsf-run', 'qsf-convert'],
};

/** Where systems differ: files, threads, programs, and how vectors lie on the stack. The bits are compared with others'. */
const onWindows = {
  tests: '^((kernels|converter|native)(-2)?|kernel-symbols|file|threads|system)$',
  targets: ['kernels', 'file', 'threads', 'system', 'converter', 'native'].map((room) => `test_${room}`),
};

/** What the second compiler builds without sanitizers: the engine, as it is linked, and what the test of the bits runs. */
const byClang = ['libqsf_static', 'libqsf_shared', 'logits-hash'];

/** What the examples need: the package, the built-in model, and the native program that tells what is right. */
async function examples() {
  await buildPrograms('qsf-run', 'qsf-convert');
  await convertModel();
  await buildModules();
  await vitest('examples', '--config', 'tests/examples/vitest.config.ts');
}

/** The package, checked as registries and TypeScript see it. */
async function checkPackage() {
  await buildModules();
  await installLocked(join(root, 'tests', 'package'));
  await vitest('package', '--config', 'tests/package/vitest.config.ts');
}

const parts = [
  ['Types and layout of the TypeScript', typeScript],
  ['Layout of the C++', clangFormat],
  ['TypeScript unit tests and structure (Vitest)', () => vitest('vitest'), vitestCases('vitest')],
  ['Native build, with benchmarks', () => buildPreset('release', { tests: true, bench: true })],
  ['Native tests', () => ctest('release'), cases('release')],
  ['Build with Clang', () => buildPreset('clang', { tests: true, targets: byClang })],
  ['Built-in model', convertModel],
  ['Likely mistakes in the C++ (clang-tidy)', clangTidy],
  ['WebAssembly builds', () => buildWasm({ tests: true })],
  ...wasmBuilds.map((build) => {
    const preset = `wasm-${build}`;
    return [`WebAssembly tests in Node (${build})`, () => ctest(preset, '-R', testedRooms(build)), cases(preset)];
  }),
  ['Build with AddressSanitizer and UBSan, fuzzers too', () => buildPreset('asan', { tests: true })],
  ['Tests with AddressSanitizer and UBSan', () => ctest('asan'), cases('asan')],
  ['Build with ThreadSanitizer', () => buildPreset('tsan', { tests: true, targets: threaded.targets })],
  ['Tests with ThreadSanitizer', () => ctest('tsan', '-R', threaded.tests), cases('tsan')],
  ['ARM build', () => buildPreset('aarch64', { tests: true })],
  ['ARM tests under qemu', () => ctest('aarch64'), cases('aarch64')],
  ['Windows build', () => buildPreset('windows', { tests: true, targets: [...onWindows.targets, 'logits-hash'] })],
  ['Windows tests under wine', () => ctest('windows', '-R', onWindows.tests), cases('windows')],
  [
    'The same bits everywhere',
    () => vitest('parity', '--config', 'tests/parity/vitest.config.ts'),
    vitestCases('parity'),
  ],
  ['The npm package, as it is published', checkPackage, vitestCases('package')],
  ['The npm package in bundlers, browsers and Node (examples)', examples, vitestCases('examples')],
  ['Browsers, end to end (Playwright)', playwright, () => countPlaywright(join(logs, 'playwright.json'))],
];

await main(async () => {
  const start = performance.now();
  console.log('== Set-up');
  await setUp({ tests: true, bench: true });
  console.log(`   ok after ${elapsed(start)}`);
  const report = new Report();
  const words = process.argv.slice(2).map((word) => word.toLowerCase());
  const chosen = parts.filter(
    ([title]) => words.length === 0 || words.some((word) => title.toLowerCase().includes(word)),
  );
  if (chosen.length === 0) throw new Stop(`No part's title holds ${words.join(' or ')}.`);
  for (const [title, body, count] of chosen) {
    if (!(await report.part(title, body, count))) {
      process.exitCode = 1;
      break;
    }
  }
  report.end();
});
