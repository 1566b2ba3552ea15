// Runs of other programs, with messages. It has no dependencies, so that set-up can begin with Node alone.
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root folder. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** An error whose message is the one sentence to show, without a stack. */
export class Stop extends Error {}

/** Returns a program's full path if it is on PATH, else null. */
export function which(program) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // the program is not in this folder
    }
  }
  return null;
}

/** Runs a program and returns its standard output, trimmed, or null if it fails or does not exist. */
export function capture(command, args = [], options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], ...options });
  return result.status === 0 ? result.stdout.trim() : null;
}

const output = new AsyncLocalStorage();

/** Calls `body`. Programs that it starts by run() write to this file descriptor instead of the terminal. */
export const withOutput = (descriptor, body) => output.run(descriptor, body);

const running = new Set();

/** Ends every program that run() has started. Their promises reject. */
export function endAll() {
  for (const child of running) child.kill();
}

/** Runs a program and shows its output. Rejects with a Stop that calls it `name` if its exit status is not 0. */
export function run(command, args = [], { name = [command, ...args].join(' '), ...options } = {}) {
  const to = output.getStore() ?? 'inherit';
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', to, to], cwd: root, ...options });
    running.add(child);
    child.on('error', (error) => {
      running.delete(child);
      reject(new Stop(`${command} could not be started: ${error.message}.`));
    });
    child.on('close', (code, signal) => {
      running.delete(child);
      if (code === 0) resolve();
      else reject(new Stop(`${name} ended with ${signal ?? `status ${code}`}.`));
    });
  });
}

/** Runs a program of the project's Node packages. If it fails, the message has its name only. */
export const runTool = (tool, args, options = {}) =>
  run(join(root, 'node_modules', '.bin', tool), args, { name: tool, ...options });

/** Whether the module of this `import.meta.url` is the script that Node was started with. */
export const isMain = (url) => process.argv[1] === fileURLToPath(url);

/** Runs a script's main function. A Stop is shown as its sentence, any other error with its stack; both exit with 1. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    console.error(error instanceof Stop ? `\n${error.message}` : error);
    process.exit(1);
  }
}

/** Returns the time since `start` (from performance.now()) as text. */
export function elapsed(start) {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}
