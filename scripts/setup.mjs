#!/usr/bin/env node
// Installs what building needs; with --tests also what the tests need. Asks nothing, may be run again, and is quick when
// nothing is missing.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { copyTestHeaders, neededByEmscripten, setUpEmscripten } from './lib/emscripten.mjs';
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

/** The first part of the set-up, which the others need: the machine's packages; `tests` and `bench` add their own. */
export async function setUpMachine({ tests = false, bench = false } = {}) {
  checkNode();
  await install([...toBuild, ...neededByEmscripten(), ...(tests ? toTest : []), ...(bench ? toBench : [])]);
  checkVersions();
}

/** The whole set-up. */
export async function setUp(options = {}) {
  const start = performance.now();
  await setUpMachine(options);
  await Promise.all([setUpEmscripten(), installNodePackages()]);
  if (options.tests) copyTestHeaders();
  console.log(`set-up: everything is there (${elapsed(start)})`);
}

if (isMain(import.meta.url)) await main(() => setUp({ tests: process.argv.includes('--tests') }));
