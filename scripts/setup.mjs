#!/usr/bin/env node
// Installs the needs of a build; with --tests, also those of the tests. It asks no questions, may be repeated, and ends
// quickly if nothing is absent.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { copyHeaders, neededByEmscripten, setUpEmscripten } from './lib/emscripten.mjs';
import { checkVersions, install, toBench, toBuild, toTest } from './lib/packages.mjs';
import { Stop, elapsed, isMain, main, root, run } from './lib/process.mjs';

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new Stop(`Node is ${process.versions.node}; install 20.19 or newer and start again.`);
  }
}

export async function installNodePackages() {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const stamp = join(root, 'node_modules', '.qsf-lock-hash');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return;
  console.log('set-up: installing the Node packages of package-lock.json ...');
  const env = { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1' };
  await run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], { env });
  writeFileSync(stamp, hash);
}

/**
 * Installs the machine's packages, which the other parts of the set-up need; `tests` and `bench` add their own. With
 * `ask`, sudo is used only after a question.
 */
export async function setUpMachine({ tests = false, bench = false, ask = false } = {}) {
  checkNode();
  await install([...toBuild, ...neededByEmscripten(), ...(tests ? toTest : []), ...(bench ? toBench : [])], { ask });
  checkVersions();
}

/** Runs the whole set-up. */
export async function setUp(options = {}) {
  const start = performance.now();
  await setUpMachine(options);
  await Promise.all([setUpEmscripten(), installNodePackages()]);
  copyHeaders();
  console.log(`set-up: everything is there (${elapsed(start)})`);
}

if (isMain(import.meta.url)) await main(() => setUp({ tests: process.argv.includes('--tests') }));
