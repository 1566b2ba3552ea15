#!/usr/bin/env node
// Builds the page that plots the benchmarks' results into build/page, and serves it on localhost.
import { join } from 'node:path';

import { installPeers } from './lib/bench.mjs';
import { buildFolder } from './lib/build.mjs';
import { main, root } from './lib/process.mjs';

await main(async () => {
  await installPeers();
  const { build, preview } = await import('vite');
  const outDir = join(buildFolder('release'), 'page');
  const page = { root: join(root, 'tests', 'bench', 'page'), logLevel: 'warn', build: { outDir, emptyOutDir: true } };
  await build(page);
  const server = await preview({ ...page, preview: { host: 'localhost', port: 4180, strictPort: false } });
  console.log(`Open ${server.resolvedUrls.local[0]} (Ctrl+C ends it)`);
});
