// The builds, by their names in CMakePresets.json. Each ends quickly if nothing has changed.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { compilerCache } from './compiler-cache.mjs';
import { cache, dependencies, runWithEmscripten } from './emscripten.mjs';
import { Stop, root, run } from './process.mjs';

/**
 * The variants of the WebAssembly modules: for every browser, for relaxed SIMD on x86 without VNNI, for relaxed SIMD.
 */
export const variants = ['simd', 'relaxedpairs', 'relaxed'];

/** Returns a variant's modules: one, and its twin for memory that threads share. */
const modules = (variant) => [`qsf-${variant}`, `qsf-${variant}-threads`];

/** The module that makes .qsf files of other models. A page loads it for them only. */
export const maker = 'qsf-maker';

/**
 * The starters of the modules. An engine's is the same for all variants except for a name. The sources contain the first
 * variant's.
 */
const starters = [...modules(variants[0]), maker].map((name) => `${name}.js`);

/** The targets of all WebAssembly modules, and their files. */
const targets = [...variants.flatMap(modules), maker];
export const wasmFiles = targets.map((name) => `${name}.wasm`);

/** The folder of the package's sources, which also receives the WebAssembly modules. */
export const packageSources = join(root, 'web', 'src');

/** The built-in model of the demo and the browser tests. */
export const demoModel = join(root, 'web', 'demo', 'public', 'models', 'stories-8bit.qsf');

export const buildFolder = (preset) => join(root, preset === 'release' ? 'build' : `build-${preset}`);

/** Returns the options of a build folder, if it belongs to this checkout and is completely configured. */
function configured(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache) || !existsSync(join(folder, 'build.ninja'))) return undefined;
  const text = readFileSync(cache, 'utf8');
  if (!text.includes(`CMAKE_HOME_DIRECTORY:INTERNAL=${root}\n`)) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const has = (option) => text.includes(`${option}:BOOL=ON\n`);
  // A cache keeps the values of the presets as they were.
  const current = modified(join(folder, 'build.ninja')) >= modified(join(root, 'CMakePresets.json'));
  return { current, tests: has('QSF_TESTS'), bench: has('QSF_BENCH') };
}

/** Returns the command that runs CMake for a preset, with the compiler cache and the sources that it may need. */
function cmakeOf(preset) {
  const env = { ...process.env, ...dependencies(), ...compilerCache(cache) };
  return preset === 'wasm' ? (args) => runWithEmscripten('cmake', args) : (args) => run('cmake', args, { env });
}

/**
 * Configures a preset unless it is configured as the presets are now. Once benchmarks are included, they stay included.
 * @param {string} preset
 * @param {{ tests?: boolean, bench?: boolean }} options
 */
export async function configure(preset, { tests = false, bench = false } = {}) {
  const has = configured(buildFolder(preset));
  if (has?.current && has.tests === tests && (!bench || has.bench)) return;
  const on = (option, wanted) => `-D${option}=${wanted ? 'ON' : 'OFF'}`;
  await cmakeOf(preset)(['--preset', preset, on('QSF_TESTS', tests), on('QSF_BENCH', bench || has?.bench)]);
}

/**
 * Configures and builds a preset.
 * @param {string} preset
 * @param {{ tests?: boolean, bench?: boolean, targets?: string[] }} options
 */
export async function buildPreset(preset, { tests = false, bench = false, targets = [] } = {}) {
  await configure(preset, { tests, bench });
  await cmakeOf(preset)(['--build', buildFolder(preset), ...targets.flatMap((target) => ['--target', target])]);
}

/** Builds qsf-run and qsf-convert into build/bin/, and the libraries. */
export const buildNative = (options) => buildPreset('release', options);

/** Builds only some programs; qsf-convert needs no kernels. Tests stay included or excluded as they are. */
export const buildPrograms = (...targets) => buildNative({ ...configured(buildFolder('release')), targets });

/** Builds the programs of the benchmarks, in addition to the existing ones. */
export const buildBench = () =>
  buildNative({
    ...configured(buildFolder('release')),
    bench: true,
    targets: ['qsf-bench', 'make-random-model', 'qsf-convert'],
  });

/** Builds the program of bench-grammar.mjs. */
export const buildGrammarBench = () =>
  buildNative({ ...configured(buildFolder('release')), bench: true, targets: ['qsf-bench-grammar'] });

/** Builds the programs of bench-quality.mjs. */
export const buildQuality = () =>
  buildNative({
    ...configured(buildFolder('release')),
    bench: true,
    targets: ['qsf-run', 'qsf-convert', 'product-errors'],
  });

export const buildConverter = () => buildPrograms('qsf-convert');

/** Builds the WebAssembly modules and copies them to the folder where the TypeScript sources load them. */
export async function buildWasm({ tests = false } = {}) {
  await buildPreset('wasm', { tests });
  copyModules();
}

/** Builds the modules only. Their tests stay included or excluded as they are. */
export async function buildModules() {
  await buildPreset('wasm', { ...configured(buildFolder('wasm')), targets });
  copyModules();
}

function copyModules() {
  const made = join(buildFolder('wasm'), 'bin');
  checkStarters(made);
  for (const name of [...starters, ...wasmFiles]) copyIfNewer(join(made, name), join(packageSources, name));
}

/** Fails if a variant's starter differs from the first one's. */
function checkStarters(folder) {
  const [first] = variants;
  for (const variant of variants) {
    for (const name of starters) {
      const text = readFileSync(join(folder, name.replace(first, variant)), 'utf8').replaceAll(variant, first);
      if (text !== readFileSync(join(folder, name), 'utf8'))
        throw new Stop(`The scripts that start the modules differ: ${name} is not what ${variant} needs.`);
    }
  }
}

/**
 * Builds modules for every browser if there are none. They stand for the other variants, with the same bits, until
 * buildWasm() makes those. Returns whether it built.
 */
export async function buildFirstWasm() {
  if (wasmFiles.some((name) => existsSync(join(packageSources, name)))) return false;
  await buildPreset('wasm', { targets: [...modules('simd'), maker] });
  const made = join(buildFolder('wasm'), 'bin');
  for (const name of [...starters, `${maker}.wasm`]) copyIfNewer(join(made, name), join(packageSources, name));
  for (const name of modules('simd').map((module) => `${module}.wasm`)) {
    for (const stand of [...variants.slice(1).map((variant) => name.replace('simd', variant)), name])
      copyIfNewer(join(made, name), join(packageSources, stand));
  }
  return true;
}

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : -Infinity);

/** Copies through another name, so that an interrupted run leaves no partial file. */
function copyIfNewer(from, to) {
  if (!existsSync(from)) throw new Stop(`The build did not make ${from}.`);
  if (modified(to) >= modified(from)) return;
  copyFileSync(from, `${to}.unfinished`);
  renameSync(`${to}.unfinished`, to);
}

/** Converts the built-in model for the demo, unless it is newer than the model and the converter. */
export async function convertModel() {
  const model = join(root, 'models', 'stories');
  const converter = join(root, 'build', 'bin', 'qsf-convert');
  const inputs = [converter, ...readdirSync(model).map((name) => join(model, name))];
  if (modified(demoModel) > Math.max(...inputs.map(modified))) return;
  mkdirSync(dirname(demoModel), { recursive: true });
  await run(converter, [model, demoModel, '--quant-type', '8bit']);
}
