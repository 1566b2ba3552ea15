#!/usr/bin/env node
// build.mjs native | wasm | package | site: sets up and builds the native programs into build/bin/, the WebAssembly
// modules, the publishable package into dist/, or the hosted site into build/site/.
import { buildConverter, buildNative, buildWasm, convertModel } from './lib/build.mjs';
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
  site: async () => {
    await buildConverter();
    await convertModel();
    await buildWasm();
    // The import is here because set-up installs its library.
    const { buildSite } = await import('./lib/site.mjs');
    await buildSite();
  },
};

await main(async () => {
  const build = builds[process.argv[2]];
  if (!build) throw new Stop(`usage: build.mjs ${Object.keys(builds).join(' | ')}`);
  await setUp();
  await build();
});
