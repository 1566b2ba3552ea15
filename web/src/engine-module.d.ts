// The WebAssembly module as wasm/exports.cpp makes it; wasm/instance.h says what each function does. An `instance` is the
// address of one. Numbers with "code" are error numbers, 0 for none. Addresses and other 32-bit numbers that are returned
// may be negative: `>>> 0` makes them what they are.

export interface EngineModule {
  _instance_new(threads: number, tuned: number): number;
  /** Ends the threads and gives the arena back. */
  _instance_delete(instance: number): void;
  _instance_mailbox(instance: number): number;
  _instance_open(instance: number, budget: number, fileSize: number, kv: number): number;
  _instance_close(instance: number): void;
  _instance_step(instance: number): number;
  _instance_next_request(instance: number): number;
  _instance_crc32(instance: number, at: number, size: number): number;
  _instance_complete(instance: number, ticket: number): number;
  _instance_fail(instance: number, ticket: number, code: number, stagedSize: number): void;
  _instance_stage(instance: number, size: number): number;
  _instance_start(instance: number, sequence: number, textSize: number, nTokens: number, stopsSize: number): number;
  _instance_embed(
    instance: number,
    sequence: number,
    textSize: number,
    nTokens: number,
    pooling: number,
    normalize: number,
  ): number;
  _instance_stop(instance: number, sequence: number): void;
  _instance_rewind(instance: number, n: number, sequence: number): number;
  _instance_preload(instance: number): number;
  _instance_sequence(instance: number): number;
  _instance_token(instance: number): number;
  _instance_end(instance: number, sequence: number): number;
  _instance_error_code(instance: number): number;
  _instance_sentence(instance: number): void;
  _instance_piece(instance: number): void;
  _instance_embedding(instance: number): void;
  _instance_model_hash(instance: number): void;
  _instance_logits_hash(instance: number, sequence: number): void;
  _instance_detokenize(instance: number, token: number): void;
  _instance_tokenize(instance: number, textSize: number, special: number): number;
  _instance_stats(instance: number): void;
  _instance_sequence_stats(instance: number, sequence: number): void;
  _instance_memory_region(instance: number, index: number): number;
  _instance_kernel_count(instance: number, index: number): number;
  _instance_segment(instance: number, index: number): number;
}

/** With shared memory, the module starts workers for all but one of `threads`. */
declare const create: (options: {
  wasmMemory: WebAssembly.Memory;
  threads: number;
  wasmBinary?: Uint8Array;
  /** In place of what would find and compile it. */
  instantiateWasm?: (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ) => object;
  /** The script of these workers, of which kind it is, and their name, which begins with "em-pthread". */
  mainScriptUrlOrBlob?: string;
  workerType?: 'module' | 'classic';
  workerName?: string;
}) => Promise<EngineModule>;
export default create;
