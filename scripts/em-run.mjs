#!/usr/bin/env node
// em-run.mjs COMMAND ARGS...: runs a command with Emscripten, such as `scripts/em-run.mjs cmake --preset wasm`.
import { runWithEmscripten } from './lib/emscripten.mjs';
import { Stop, main } from './lib/process.mjs';

await main(async () => {
  const [command, ...args] = process.argv.slice(2);
  if (!command) throw new Stop('usage: em-run.mjs COMMAND ARGS...');
  await runWithEmscripten(command, args, process.cwd());
});
