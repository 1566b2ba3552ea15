// The builds, by their names in CMakePresets.json. Each ends quickly when nothing has changed.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { dependencies, runWithEmscripten } from './emscripten.mjs';
import { Stop, root, run } from './process.mjs';

/** The variants of the WebAssembly modules: for everywhere, for relaxed SIMD on x86 without VNNI, for relaxed SIMD. */
export const variants = ['simd', 'relaxedpairs', 'relaxed'];

/** The WebAssembly builds: one with relaxed SIMD, which has the modules of all variants, and one without, which has tests only. */
export const wasmBuilds = ['simd', 'relaxed'];

/** Where a build's instructions are chosen. All other rooms are the same code in each: the last one tests them. */
const chosenByVariant = ['kernels', 'model', 'run'];

/** Which rooms' tests a build has, as a pattern. */
export const testedRooms = (build) => (build === wasmBuilds.at(-1) ? '.' : `^(${chosenByVariant.join('|')})$`);

/** A variant's modules: one, and its twin for memory that threads share. */
const modules = (variant) => [`qsf-${variant}`, `qsf-${variant}-threads`];

/** What starts a module is the same for all variants but for a name; the sources have the first's. */
const starters = modules(variants[0]).map((name) => `${name}.js`);

/** Every WebAssembly module. */
export const wasmFiles = variants.flatMap(modules).map((name) => `${name}.wasm`);

/** The package's sources; the WebAssembly modules are put beside them. */
export const packageSources = join(root, 'web', 'src');

/** The built-in model as the demo and the browser tests load it. */
export const demoModel = join(root, 'web', 'demo', 'public', 'models', 'stories-8bit.qsf');

export const buildFolder = (preset) => join(root, preset === 'release' ? 'build' : `build-${preset}`);

/** What a build folder has, if it is one of this checkout and completely configured. */
function configured(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache) || !existsSync(join(folder, 'build.ninja'))) return undefined;
  const text = readFileSync(cache, 'utf8');
  if (!text.includes(`CMAKE_HOME_DIRECTORY:INTERNAL=${root}\n`)) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const has = (option) => text.includes(`${option}:BOOL=ON\n`);
  return { tests: has('QSF_TESTS'), bench: has('QSF_BENCH') };
}

/**
 * Configures (when needed) and builds a preset. Benchmarks stay in once they are.
 * @param {string} preset
 * @param {{ tests?: boolean, bench?: boolean, targets?: string[] }} options
 */
export async function buildPreset(preset, { tests = false, bench = false, targets = [] } = {}) {
  const folder = buildFolder(preset);
  const has = configured(folder);
  const on = (option, wanted) => `-D${option}=${wanted ? 'ON' : 'OFF'}`;
  const env = { ...process.env, ...dependencies() };
  const cmake = preset.startsWith('wasm')
    ? (args) => runWithEmscripten('cmake', args)
    : (args) => run('cmake', args, { env });
  if (has?.tests !== tests || (bench && !has.bench)) {
    await cmake(['--preset', preset, on('QSF_TESTS', tests), on('QSF_BENCH', bench || has?.bench)]);
  }
  await cmake(['--build', folder, ...targets.flatMap((target) => ['--target', target])]);
}

/** Builds qsf-run and qsf-convert into build/bin/, and the libraries. */
export const buildNative = (options) => buildPreset('release', options);

/** Builds some programs alone, of which qsf-convert needs no kernels; the tests stay in or out as they are. */
export const buildPrograms = (...targets) => buildNative({ ...configured(buildFolder('release')), targets });

/** What benchmarks run, beside all that is there. */
export const buildBench = () =>
  buildNative({
    ...configured(buildFolder('release')),
    bench: true,
    targets: ['qsf-bench', 'make-random-model', 'qsf-convert'],
  });

/** What bench-quality.mjs runs. */
export const buildQuality = () =>
  buildNative({
    ...configured(buildFolder('release')),
    bench: true,
    targets: ['qsf-run', 'qsf-convert', 'product-errors'],
  });

export const buildConverter = () => buildPrograms('qsf-convert');

/** Builds the WebAssembly modules and puts them where the TypeScript sources look for them. */
export async function buildWasm({ tests = false } = {}) {
  if (tests) {
    const chosen = chosenByVariant.map((room) => `test_${room}`);
    await buildPreset('wasm-simd', { tests, targets: [...chosen, 'logits-hash'] });
  }
  await buildPreset('wasm-relaxed', { tests });
  copyModules();
}

/** Builds the modules alone; their tests stay in or out as they are. */
export async function buildModules() {
  await buildPreset('wasm-relaxed', { ...configured(buildFolder('wasm-relaxed')), targets: variants.flatMap(modules) });
  copyModules();
}

function copyModules() {
  const made = join(buildFolder('wasm-relaxed'), 'bin');
  checkStarters(made);
  for (const name of [...starters, ...wasmFiles]) copyIfNewer(join(made, name), join(packageSources, name));
}

/** Stops where a variant's starter does other things than the first's. */
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
 * Where no modules are yet, builds those that every browser can run, which also stand for the others (the bits are the
 * same) until buildWasm() has made these. Returns whether it did.
 */
export async function buildFirstWasm() {
  if (wasmFiles.some((name) => existsSync(join(packageSources, name)))) return false;
  await buildPreset('wasm-relaxed', { targets: ['qsf-simd', 'qsf-simd-threads'] });
  const made = join(buildFolder('wasm-relaxed'), 'bin');
  for (const name of starters) copyIfNewer(join(made, name), join(packageSources, name));
  for (const name of modules('simd').map((module) => `${module}.wasm`)) {
    for (const stand of [...variants.slice(1).map((variant) => name.replace('simd', variant)), name])
      copyIfNewer(join(made, name), join(packageSources, stand));
  }
  return true;
}

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : -Infinity);

/** Copies by way of another name, so that an interrupted run leaves nothing half-written. */
function copyIfNewer(from, to) {
  if (!existsSync(from)) throw new Stop(`The build did not make ${from}.`);
  if (modified(to) >= modified(from)) return;
  copyFileSync(from, `${to}.unfinished`);
  renameSync(`${to}.unfinished`, to);
}

/** Converts the built-in model for the demo, unless that was done since model and converter changed. */
export async function convertModel() {
  const model = join(root, 'models', 'stories');
  const converter = join(root, 'build', 'bin', 'qsf-convert');
  const inputs = [converter, ...readdirSync(model).map((name) => join(model, name))];
  if (modified(demoModel) > Math.max(...inputs.map(modified))) return;
  mkdirSync(dirname(demoModel), { recursive: true });
  await run(converter, [model, demoModel, '--quant-type', '8bit']);
}
