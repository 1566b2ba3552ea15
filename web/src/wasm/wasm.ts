// The WebAssembly modules and their locations. One script for each kind of memory starts all variants.
import type { WasmSource } from '../contract.js';
import type { EngineModule, ModuleStarter } from './engine.js';
import createAlone from '../qsf-simd.js';
import createShared from '../qsf-simd-threads.js';
import type { Variant } from '../types.js';
import { fetchModule, nameOther, ownScript } from '../worker/worker-platform.js';

/** Bundlers recognize these expressions, and include the files. */
const FILES: Record<Variant, Record<'alone' | 'shared', () => URL>> = {
  relaxed: {
    alone: () => new URL('../qsf-relaxed.wasm', import.meta.url),
    shared: () => new URL('../qsf-relaxed-threads.wasm', import.meta.url),
  },
  relaxedpairs: {
    alone: () => new URL('../qsf-relaxedpairs.wasm', import.meta.url),
    shared: () => new URL('../qsf-relaxedpairs-threads.wasm', import.meta.url),
  },
  simd: {
    alone: () => new URL('../qsf-simd.wasm', import.meta.url),
    shared: () => new URL('../qsf-simd-threads.wasm', import.meta.url),
  },
};

function moduleOf(source: WasmSource, variant: Variant, kind: 'alone' | 'shared'): Promise<WebAssembly.Module> {
  if (source instanceof Uint8Array) return WebAssembly.compile(source);
  if (source === undefined) return fetchModule(FILES[variant][kind]().href);
  if (!source.endsWith('/')) return fetchModule(source);
  return fetchModule(new URL(`qsf-${variant}${kind === 'shared' ? '-threads' : ''}.wasm`, source).href);
}

/** The name by which the modules' own scripts recognize their threads. */
export const THREAD = 'em-pthread';

export const startModule: ModuleStarter = async (source, variant, threads, wasmMemory) => {
  const kind = wasmMemory.buffer instanceof ArrayBuffer ? 'alone' : 'shared';
  const module = await moduleOf(source, variant, kind);
  const { address, type } = ownScript();
  const create = kind === 'shared' ? createShared : createAlone;
  return new Promise((resolve, reject) => {
    const instantiateWasm = (imports: WebAssembly.Imports, done: Started): object => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module), reject);
      return {};
    };
    const others = threads > 1 && { mainScriptUrlOrBlob: address, workerType: type, workerName: nameOther(THREAD) };
    create({ wasmMemory, threads, instantiateWasm, ...others }).then(resolve, reject);
  });
};

type Started = (instance: WebAssembly.Instance, module: WebAssembly.Module) => void;

/** Emscripten's starter of a module. With shared memory, it starts workers for all but one of `threads`. */
export type CreateModule = (options: {
  wasmMemory: WebAssembly.Memory;
  threads: number;
  wasmBinary?: Uint8Array;
  /** Replaces the starter's own search and compilation of the module. */
  instantiateWasm?: (imports: WebAssembly.Imports, done: Started) => object;
  /** The script of these workers, its kind, and their name, which begins with THREAD. */
  mainScriptUrlOrBlob?: string;
  workerType?: 'module' | 'classic';
  workerName?: string;
}) => Promise<EngineModule>;
