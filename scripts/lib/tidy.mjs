// clang-tidy over groups of sources, once for each state of them. Most of its time is spent on headers, so the sources
// of a target are checked in the groups of CMake's unity builds. A stamp in the folder that checkouts share records
// that a group was clean. Its name is a hash of all files that the group includes, the flags and the configuration.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { buildFolder, configure } from './build.mjs';
import { cache } from './emscripten.mjs';
import { Stop, capture, root, run } from './process.mjs';

const tool = 'clang-tidy-19';
const capturing = promisify(execFile);

/**
 * Hashes of files, each computed once. The project's files are identified by content, the system's by size and time.
 */
class Hashes {
  #known = new Map();

  of(path) {
    let known = this.#known.get(path);
    if (known === undefined) {
      known = path.startsWith(root)
        ? createHash('sha256')
            .update(fromRoot(readFileSync(path, 'utf8')))
            .digest('hex')
        : `${statSync(path).size} ${statSync(path).mtimeMs}`;
      this.#known.set(path, known);
    }
    return known;
  }
}

/** Removes the checkout's path, which differs between checkouts. */
const fromRoot = (text) => text.replaceAll(root, '');

/** Returns the paths of all files that a compile command reads. */
async function filesRead({ command, directory, file }) {
  const asked = `${command.replace(/ -o \S+ -c \S+$/, '')} -w -M ${file}`;
  const { stdout } = await capturing('sh', ['-c', asked], { cwd: directory, maxBuffer: 1 << 26 });
  return stdout.replaceAll('\\\n', ' ').split(/\s+/).slice(1).filter(Boolean);
}

/** Returns the compile commands of the sources that a group includes, or nothing for a source that is in no group. */
function members(group) {
  if (!group.file.includes('/Unity/')) return [];
  const included = [...readFileSync(group.file, 'utf8').matchAll(/^#include "(.*\.cpp)"$/gm)].map(([, path]) => path);
  return included.map((file) => ({ ...group, file, command: group.command.replaceAll(group.file, file) }));
}

/** Checks the sources of the native programs, those that CMake generates included. */
export async function clangTidy() {
  await configure('tidy', { tests: false });
  const build = buildFolder('tidy');
  await run('cmake', [build]); // sources may have come or gone, and nothing is built here
  const groups = JSON.parse(readFileSync(join(build, 'compile_commands.json'), 'utf8'));
  const apart = join(build, 'apart');
  mkdirSync(apart, { recursive: true });
  writeFileSync(join(apart, 'compile_commands.json'), JSON.stringify(groups.flatMap(members)));
  const stamps = join(cache, 'tidy');
  mkdirSync(stamps, { recursive: true });
  const common = [capture(tool, ['--version']), readFileSync(join(root, '.clang-tidy'), 'utf8')].join('\n');
  const hashes = new Hashes();

  // A group is made of includes of sources.
  const ofGroup = '-checks=-bugprone-suspicious-include';
  const check = (database, file) =>
    run(tool, ['-quiet', ...(database === build ? [ofGroup] : []), '-p', database, file], {
      name: `${tool} ${fromRoot(file)}`,
    });
  const failed = [];
  const checkGroup = async (group) => {
    const read = (await filesRead(group)).map((path) => `${fromRoot(path)} ${hashes.of(path)}`);
    const state = [common, fromRoot(group.command), ...read].join('\n');
    const stamp = join(stamps, createHash('sha256').update(state).digest('hex'));
    if (existsSync(stamp)) return;
    try {
      const files = members(group);
      const together = files.length < 2 || (await compiles(group));
      for (const { file } of together ? [group] : files) await check(together ? build : apart, file);
      writeFileSync(stamp, '');
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      failed.push(error.message);
    }
  };
  const waiting = [...groups];
  const worker = async () => {
    for (let group = waiting.pop(); group; group = waiting.pop()) await checkGroup(group);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  if (failed.length > 0) throw new Stop(failed.join('\n'));
}

/** Returns whether the sources of a group can be one unit, without a clash of their own names. */
const compiles = ({ command, directory }) =>
  capturing('sh', ['-c', `${command.replace(/ -o \S+ -c /, ' -fsyntax-only ')}`], { cwd: directory }).then(
    () => true,
    () => false,
  );
