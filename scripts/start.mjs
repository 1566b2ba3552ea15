#!/usr/bin/env node
// Sets up, builds the changed parts, converts the built-in model, and serves the demo on localhost.
import { join } from 'node:path';

import { buildConverter, buildFirstWasm, buildWasm, convertModel } from './lib/build.mjs';
import { setUpEmscripten } from './lib/emscripten.mjs';
import { elapsed, main, root } from './lib/process.mjs';
import { installNodePackages, setUpMachine } from './setup.mjs';

/** Builds the modules that the page needs first. Returns whether others must still be built. */
async function buildModules() {
  await setUpEmscripten();
  if (await buildFirstWasm()) return true;
  await buildWasm();
  return false;
}

await main(async () => {
  const start = performance.now();
  await setUpMachine({ ask: true });
  // Only the needs of the page are made here; downloads overlap with compiling.
  const [unfinished] = await Promise.all([buildModules(), installNodePackages(), buildConverter().then(convertModel)]);
  const { build, preview } = await import('vite');
  const demo = { root: join(root, 'web', 'demo'), logLevel: 'warn' };
  await build(demo);
  // If another program uses the port, the next free one is used.
  const server = await preview({ ...demo, preview: { host: 'localhost', port: 4173, strictPort: false } });
  console.log(`\nQSF is ready after ${elapsed(start)}: open ${server.resolvedUrls.local[0]} (Ctrl+C ends it)`);
  if (!unfinished) return;
  console.log('Still building the modules for relaxed SIMD, which are faster ...');
  await buildWasm();
  // An open page continues with its old files.
  await build({ ...demo, build: { emptyOutDir: false } });
  console.log(`They are there after ${elapsed(start)}: reload the page to have them.`);
});
