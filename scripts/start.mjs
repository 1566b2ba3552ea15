#!/usr/bin/env node
// Sets up, builds what has changed, converts the built-in model, and serves the demo on localhost.
import { join } from 'node:path';

import { buildConverter, buildWasm, convertModel } from './lib/build.mjs';
import { setUpEmscripten } from './lib/emscripten.mjs';
import { elapsed, main, root } from './lib/process.mjs';
import { installNodePackages, setUpMachine } from './setup.mjs';

await main(async () => {
  const start = performance.now();
  await setUpMachine();
  // What the page needs and nothing else; fetching overlaps with compiling.
  await Promise.all([setUpEmscripten().then(buildWasm), installNodePackages(), buildConverter().then(convertModel)]);
  const { build, preview } = await import('vite');
  const demo = { root: join(root, 'web', 'demo'), logLevel: 'warn' };
  await build(demo);
  // Another program may have the port: the next free one is taken then.
  const server = await preview({ ...demo, preview: { host: 'localhost', port: 4173, strictPort: false } });
  console.log(`\nQSF is ready after ${elapsed(start)}: open ${server.resolvedUrls.local[0]} (Ctrl+C ends it)`);
});
