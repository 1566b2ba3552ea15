#!/usr/bin/env node
// build.mjs native | wasm | package: sets up and builds the native programs into build/bin/, the WebAssembly modules,
// or the publishable package into dist/.
import { buildNative, buildWasm } from './lib/build.mjs';
import { buildPackage } from './lib/package.mjs';
import { Stop, main } from './lib/process.mjs';
import { setUp } from './setup.mjs';

const builds = {
  native: buildNative,
  wasm: buildWasm,
  package: async () => {
    await buildWasm();
    await buildPackage();
  },
};

await main(async () => {
  const build = builds[process.argv[2]];
  if (!build) throw new Stop(`usage: build.mjs ${Object.keys(builds).join(' | ')}`);
  await setUp();
  await build();
});
