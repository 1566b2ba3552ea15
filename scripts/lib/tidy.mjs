// clang-tidy over groups of sources, once for each state of them. Most of its time is spent on headers, so the sources
// of a target are checked in the groups of CMake's unity builds. A stamp in the folder that checkouts share records
// that a group was clean. Its name is a hash of all files that the group includes, the flags and the configuration.
// The repository records a commit at which every group was clean, so that a first run checks only what differs from it.
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
const configuration = join(root, '.clang-tidy');
/** Its line is the hash of the commit. */
const record = join(root, '.clang-tidy-commit');
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

/**
 * Returns the paths of the files that differ from the recorded commit. Returns nothing if the history does not have it,
 * or if the configuration differs.
 */
function changedFiles() {
  const git = (...args) => capture('git', args, { cwd: root });
  const changed = git('diff', '--name-only', '-z', readFileSync(record, 'utf8').trim());
  const added = git('ls-files', '-z', '--others', '--exclude-standard');
  if (changed === null || added === null) return undefined;
  const paths = new Set(
    `${changed}\0${added}`
      .split('\0')
      .filter(Boolean)
      .map((path) => join(root, path)),
  );
  return paths.has(configuration) ? undefined : paths;
}

/**
 * Returns the groups that check all changed files: those with a changed source, and one that reads each other file.
 * Units of instruction sets are generated from one source and differ in their vocabulary, so a file of one is checked
 * in all.
 * @param {{ sources: string[], read: string[] }[]} groups
 * @param {Set<string>} changed
 */
function groupsOf(groups, changed) {
  const isMade = ({ sources }) => sources.some((path) => path.includes('/kernels/isa_'));
  const chosen = groups.filter((group) =>
    (isMade(group) ? group.read : group.sources).some((path) => changed.has(path)),
  );
  const checked = new Set(chosen.flatMap(({ read }) => read));
  for (const group of groups) {
    if (!group.read.some((path) => changed.has(path) && !checked.has(path))) continue;
    chosen.push(group);
    group.read.forEach((path) => checked.add(path));
  }
  return chosen;
}

/** Calls an asynchronous function for each item, for as many at once as there are processors. */
async function forEach(items, body) {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.pop(); item; item = waiting.pop()) await body(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

/**
 * Checks the sources of the native programs, those that CMake generates included.
 * @param {{ everything?: boolean }} options `everything` also checks what has not changed since the recorded commit, and
 *   records the present one
 */
export async function clangTidy({ everything = false } = {}) {
  await configure('tidy', { tests: false });
  const build = buildFolder('tidy');
  await run('cmake', [build]); // sources may have come or gone, and nothing is built here
  const all = JSON.parse(readFileSync(join(build, 'compile_commands.json'), 'utf8'));
  const apart = join(build, 'apart');
  mkdirSync(apart, { recursive: true });
  writeFileSync(join(apart, 'compile_commands.json'), JSON.stringify(all.flatMap(members)));
  await forEach(all, async (group) => {
    group.sources = [group, ...members(group)].map(({ file }) => file);
    group.read = await filesRead(group);
  });
  const changed = everything ? undefined : changedFiles();
  const groups = changed ? groupsOf(all, changed) : all;
  const stamps = join(cache, 'tidy');
  mkdirSync(stamps, { recursive: true });
  const common = [capture(tool, ['--version']), readFileSync(configuration, 'utf8')].join('\n');
  const hashes = new Hashes();

  // A group is made of includes of sources.
  const ofGroup = '-checks=-bugprone-suspicious-include';
  const check = (database, file) =>
    run(tool, ['-quiet', ...(database === build ? [ofGroup] : []), '-p', database, file], {
      name: `${tool} ${fromRoot(file)}`,
    });
  const failed = [];
  await forEach(groups, async (group) => {
    const read = group.read.map((path) => `${fromRoot(path)} ${hashes.of(path)}`);
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
  });
  if (failed.length > 0) throw new Stop(failed.join('\n'));
  const commit = capture('git', ['rev-parse', 'HEAD'], { cwd: root });
  const clean = capture('git', ['status', '--porcelain'], { cwd: root }) === '';
  if (everything && commit && clean) writeFileSync(record, `${commit}\n`);
}

/** Returns whether the sources of a group can be one unit, without a clash of their own names. */
const compiles = ({ command, directory }) =>
  capturing('sh', ['-c', `${command.replace(/ -o \S+ -c /, ' -fsyntax-only ')}`], { cwd: directory }).then(
    () => true,
    () => false,
  );
