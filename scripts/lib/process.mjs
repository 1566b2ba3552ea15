// Running other programs, and saying so. No dependencies, so that set-up can begin with Node alone.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root folder. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** An error whose message is the one sentence to show; it carries no stack for the user. */
export class Stop extends Error {}

/** A program's full path when it is on PATH, else null. */
export function which(program) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this folder
    }
  }
  return null;
}

/** Runs a program and returns its standard output, trimmed, or null when it fails or does not exist. */
export function capture(command, args = [], options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], ...options });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** Where the programs that run() starts write: file descriptors, or 'inherit'. */
export const output = { to: 'inherit' };

/** Runs a program with its output shown; rejects with Stop, naming it as `name`, when it does not end in 0. */
export function run(command, args = [], { name = [command, ...args].join(' '), ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', output.to, output.to], cwd: root, ...options });
    child.on('error', (error) => reject(new Stop(`${command} could not be started: ${error.message}.`)));
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Stop(`${name} ended with ${signal ?? `status ${code}`}.`));
    });
  });
}

/** Runs a program of the project's Node packages; its name alone stands for it when it fails. */
export const runTool = (tool, args, options = {}) =>
  run(join(root, 'node_modules', '.bin', tool), args, { name: tool, ...options });

/** Whether the module of this `import.meta.url` is the script that Node was started with. */
export const isMain = (url) => process.argv[1] === fileURLToPath(url);

/** Runs a script's main function: a Stop is shown as its sentence, anything else with its stack; both end in 1. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    console.error(error instanceof Stop ? `\n${error.message}` : error);
    process.exit(1);
  }
}

/** The time since `start` (from performance.now()) as text. */
export function elapsed(start) {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}
