// Which WebAssembly build this browser can run, found by validating the very instruction that matters, and with how many
// threads.
import type { WasmSource } from './contract.js';
import { QSFError } from './errors.js';
import type { Variant } from './types.js';

const PREAMBLE = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const V128 = 0x7b;

/** A module with one function: `n` vectors in, `opcode` on them, one vector out. */
export function probe(n: number, opcode: number[]): Uint8Array<ArrayBuffer> {
  const gets = Array.from({ length: n }, (_, i) => [0x20, i]).flat();
  const body = [0x00, ...gets, ...opcode, 0x0b];
  const section = (id: number, bytes: number[]) => [id, bytes.length, ...bytes];
  return Uint8Array.from([
    ...PREAMBLE,
    ...section(0x01, [1, 0x60, n, ...Array.from({ length: n }, () => V128), 1, V128]),
    ...section(0x03, [1, 0]),
    ...section(0x0a, [1, body.length, ...body]),
  ]);
}

/** i32x4.relaxed_dot_i8x16_i7x16_add_s */
export const RELAXED_DOT = probe(3, [0xfd, 0x93, 0x02]);
/** i32x4.dot_i16x8_s */
export const SIMD_DOT = probe(2, [0xfd, 0xba, 0x01]);

/** Throws unsupported_host where a page's rules let no module be made. */
export function checkWebAssembly(): void {
  try {
    new WebAssembly.Module(Uint8Array.from(PREAMBLE));
  } catch (cause) {
    throw new QSFError(
      'unsupported_host',
      "This page may not run WebAssembly: its Content-Security-Policy must have 'wasm-unsafe-eval' in script-src.",
      { cause },
    );
  }
}

export function detectVariant(): Variant {
  if (typeof WebAssembly === 'object') {
    if (WebAssembly.validate(RELAXED_DOT)) return 'relaxed';
    if (WebAssembly.validate(SIMD_DOT)) return 'simd';
  }
  throw new QSFError('unsupported_host', 'This browser has no WebAssembly SIMD.');
}

/** What a page or worker tells of itself. */
export interface Host {
  crossOriginIsolated?: boolean;
  navigator?: { hardwareConcurrency?: number };
}

/** The threads to compute with: those `wanted`, or what suits the host. */
export function detectThreads(wanted: number | undefined, host: Host = globalThis): number {
  const isolated = host.crossOriginIsolated === true;
  if (wanted === undefined) {
    const processors = host.navigator?.hardwareConcurrency ?? 1;
    // Often two processors are one core, and memory is busy with four cores.
    return isolated ? Math.min(processors, Math.max(2, Math.ceil(processors / 2)), 4) : 1;
  }
  if (wanted > 1 && !isolated) {
    throw new QSFError(
      'unsupported_host',
      `${wanted} threads need a cross-origin isolated page, and this is none: let the server send ` +
        'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.',
    );
  }
  return wanted;
}

/**
 * Whether one thread computes in memory that others see, which then read into it: where there is such memory and the module
 * for it is to be had, since one that is given by itself may be the other.
 */
export function detectSharing(wasm: WasmSource, host: Host = globalThis): boolean {
  return host.crossOriginIsolated === true && (wasm === undefined || (typeof wasm === 'string' && wasm.endsWith('/')));
}
