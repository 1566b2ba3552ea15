// The module that makes .qsf files of other models, as wasm/maker/maker.cpp declares it, and its start.
import type { Failure } from '../boundary.gen.js';
import type { WasmSource } from '../contract.js';
import { fetchModule } from '../worker/worker-platform.js';
import createMaker from '../qsf-maker.js';

/** The model's files, which the maker reads without waiting. */
export interface MakerFiles {
  /** Returns the number of the file with that name; -1 if there is none, or if it is not known yet. */
  find(name: string): number;
  size(file: number): number;
  /** Fills `into`. False if the bytes are not there yet. */
  read(file: number, offset: number, into: Uint8Array): boolean;
}

/**
 * One model. A call that fails while bytes or names are not there yet is repeated when they are. Views are valid until
 * the next call.
 */
export interface Maker {
  /** Plans the file that is made of a file, or of all files if `name` is empty. */
  plan(name: string): Failure | undefined;
  /** Does the same in less memory, with the front and the size of an earlier plan. `checked` has a 0 per segment. */
  restore(name: string, front: Uint8Array, size: number, checked: Uint8Array): Failure | undefined;
  /** Returns the kind of the model, such as "GGUF". */
  kind(): string;
  /** Returns the size of the made file in bytes. */
  size(): number;
  /** Returns everything before the weights, after plan(). */
  front(): Uint8Array;
  /** Returns sentences on the model. */
  warnings(): string[];
  /** Returns offset and size of each segment. */
  segments(): number[];
  /** Returns file, offset and size of each run of bytes that a segment is made from. */
  runs(segment: number): number[];
  make(segment: number): Uint8Array | Failure;
  /** Makes bytes from `begin` on of a segment, and reads no more than they need. */
  part(segment: number, begin: number, size: number): Uint8Array | Failure;
  /** Returns the beginning of the front with the checksum of each segment. */
  tables(checksums: readonly number[]): Uint8Array | Failure;
  /** Returns the bytes of the module's memory. */
  memory(): number;
}

/** A module, which has one model. */
export interface MakerModule extends Maker {
  /** Sets the model's files, and the type that all matrices are rounded to; empty: none. plan() refuses an unknown one. */
  begin(files: MakerFiles, quantType: string): void;
}

/** Starts the module anew, with a memory of its own. */
export type MakerStarter = (source: WasmSource) => Promise<MakerModule>;

/** Bundlers recognize this expression, and include the file. */
const own = () => new URL('../qsf-maker.wasm', import.meta.url);

/** A module that is given by itself is an engine's, so that the maker then has the package's own location. */
const address = (source: WasmSource) =>
  typeof source === 'string' && source.endsWith('/') ? new URL('qsf-maker.wasm', source) : own();

/** The compiled modules by address: one model starts several. */
const compiled = new Map<string, Promise<WebAssembly.Module>>();

function moduleAt(url: string): Promise<WebAssembly.Module> {
  const module = compiled.get(url) ?? fetchModule(url);
  compiled.set(url, module);
  module.catch(() => compiled.delete(url));
  return module;
}

export const startMaker: MakerStarter = async (source) => {
  const module = await moduleAt(address(source).href);
  return new Promise((resolve, reject) => {
    const instantiateWasm = (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void): object => {
      WebAssembly.instantiate(module, imports).then(done, reject);
      return {};
    };
    createMaker({ instantiateWasm }).then(resolve, reject);
  });
};

/** Emscripten's starter of the module. */
export type CreateMaker = (options: {
  instantiateWasm?: (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void) => object;
  wasmBinary?: Uint8Array;
}) => Promise<MakerModule>;
