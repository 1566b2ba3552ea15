// The choice of the WebAssembly build and of the number of threads. A build is possible if its own instruction
// validates, and of two possible ones a timing finds the faster.
import type { WasmSource } from '../contract.js';
import { QSFError } from '../errors.js';
import type { Variant } from '../types.js';

const PREAMBLE = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const V128 = 0x7b;

const I32 = 0x7f;
const END = 0x0b;
const get = (local: number) => [0x20, local];
const set = (local: number) => [0x21, local];
/** LEB128, of up to 14 bits. */
const size = (n: number) => (n < 0x80 ? [n] : [(n & 0x7f) | 0x80, n >> 7]);

/** Returns a module with one function of one result, which is exported as `f`. */
function module(parameters: number[], result: number, body: number[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, bytes: number[]) => [id, ...size(bytes.length), ...bytes];
  return Uint8Array.from([
    ...PREAMBLE,
    ...section(0x01, [1, 0x60, parameters.length, ...parameters, 1, result]),
    ...section(0x03, [1, 0]),
    ...section(0x07, [1, 1, 'f'.charCodeAt(0), 0, 0]),
    ...section(0x0a, [1, ...size(body.length), ...body]),
  ]);
}

/** Returns a module whose function applies `opcode` to `n` vectors and returns one vector. */
export function probe(n: number, opcode: number[]): Uint8Array<ArrayBuffer> {
  const vectors = Array.from({ length: n }, () => V128);
  return module(vectors, V128, [0x00, ...vectors.flatMap((_, i) => get(i)), ...opcode, END]);
}

/**
 * Returns a module whose function takes a number of rounds. A round has eight steps, each of which adds a dot product
 * of codes to a sum and waits for the one before.
 */
export function rounds(step: (sum: number, codes: number) => number[]): Uint8Array<ArrayBuffer> {
  const [left, sum, codes] = [0, 1, 2] as const;
  return module([I32], I32, [
    ...[1, 2, V128],
    ...[0x41, 1, 0xfd, 0x0f, ...set(codes)], // i8x16.splat
    ...[0x03, 0x40], // loop
    ...Array.from({ length: 8 }, () => [...step(sum, codes), ...set(sum)]).flat(),
    ...[...get(left), 0x41, 1, 0x6b, 0x22, left, 0x0d, 0, END], // while (--left)
    ...[...get(sum), 0xfd, 0x1b, 0, END], // i32x4.extract_lane
  ]);
}

const FOUR = [0xfd, 0x93, 0x02]; // i32x4.relaxed_dot_i8x16_i7x16_add_s
const PAIRS = [0xfd, 0x92, 0x02]; // i16x8.relaxed_dot_i8x16_i7x16_s
const ADD = [0xfd, 0x8e, 0x01]; // i16x8.add
export const RELAXED_DOT = probe(3, FOUR);
/** The same sums of dot products, by four products at once and by pairs. */
export const BY_FOUR = rounds((sum, codes) => [...get(sum), ...get(codes), ...get(sum), ...FOUR]);
export const BY_PAIRS = rounds((sum, codes) => [...get(sum), ...get(codes), ...PAIRS, ...get(sum), ...ADD]);
/** Rounds that take about a millisecond, and ticks of the clock that a timing has at least. */
const ROUNDS = 100_000;
const TICKS = 4;
const MOST_ROUNDS = 64 * ROUNDS;
/**
 * Timings after which neither function has become faster by a tenth, and most timings. A function is faster once the
 * browser has compiled it well, and slower while something else has the machine.
 */
const SETTLED = 8;
const TIMES = 60;
/** The ratio of times above which pairs are used. It is 1.8 without VNNI. */
const SLOWER = 1.35;
/** i32x4.dot_i16x8_s */
export const SIMD_DOT = probe(2, [0xfd, 0xba, 0x01]);

/** Throws unsupported_host if the page's policy allows no module. */
export function checkWebAssembly(): void {
  try {
    new WebAssembly.Module(Uint8Array.from(PREAMBLE));
  } catch (cause) {
    throw new QSFError(
      'unsupported_host',
      "this page may not run WebAssembly: its Content-Security-Policy must have 'wasm-unsafe-eval' in script-src",
      { cause },
    );
  }
}

/**
 * Whether pairs are faster. Four products at once are one instruction; on processors without it they are more
 * instructions than pairs and their sum.
 */
function pairsAreFaster(): boolean {
  const [four, pairs] = [BY_FOUR, BY_PAIRS].map(
    (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports['f'] as (rounds: number) => number,
  ) as [(rounds: number) => number, (rounds: number) => number];
  const time = (run: (rounds: number) => number, n: number) => {
    const begin = performance.now();
    run(n);
    return performance.now() - begin;
  };
  const enough = TICKS * clockTick();
  let shortest = [Infinity, Infinity] as [number, number];
  for (let n = ROUNDS, i = 0, same = 0; i < TIMES && same < SETTLED; i++, same++) {
    [four, pairs].forEach((run, which) => {
      const ms = time(run, n);
      if (ms < 0.9 * shortest[which]!) same = 0;
      shortest[which] = Math.min(shortest[which]!, ms);
    });
    if (Math.min(...shortest) >= enough || n >= MOST_ROUNDS) continue;
    n *= 2;
    shortest = [Infinity, Infinity];
    same = 0;
  }
  return shortest[0] > SLOWER * shortest[1];
}

/** Returns the milliseconds by which the clock advances at once; browsers make them coarse. */
function clockTick(): number {
  const begin = performance.now();
  let now = begin;
  while (now === begin) now = performance.now();
  return now - begin;
}

export function detectVariant(): Variant {
  if (typeof WebAssembly === 'object') {
    if (WebAssembly.validate(RELAXED_DOT)) return pairsAreFaster() ? 'relaxedpairs' : 'relaxed';
    if (WebAssembly.validate(SIMD_DOT)) return 'simd';
  }
  throw new QSFError('unsupported_host', 'this browser has no WebAssembly SIMD');
}

/** The facts that a page or worker reports about itself. */
export interface Host {
  crossOriginIsolated?: boolean;
  navigator?: { hardwareConcurrency?: number };
}

/**
 * Returns the number of threads to compute with: `wanted`, or the number that suits the host. Throws unsupported_host
 * if `wanted` needs isolation that the page does not have.
 */
export function detectThreads(wanted: number | undefined, host: Host = globalThis): number {
  const isolated = host.crossOriginIsolated === true;
  if (wanted === undefined) {
    const processors = host.navigator?.hardwareConcurrency ?? 1;
    // Often two processors are one core, and four cores use all of the memory's bandwidth.
    return isolated ? Math.min(processors, Math.max(2, Math.ceil(processors / 2)), 4) : 1;
  }
  if (wanted > 1 && !isolated) {
    throw new QSFError(
      'unsupported_host',
      `${wanted} threads need a cross-origin isolated page, and this is none: let the server send ` +
        'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp',
    );
  }
  return wanted;
}

/**
 * Whether a single computing thread uses shared memory, so that other threads can read into it. This needs isolation
 * and the module for shared memory. A module that is given by itself may be the other one.
 */
export function detectSharing(wasm: WasmSource, host: Host = globalThis): boolean {
  return host.crossOriginIsolated === true && (wasm === undefined || (typeof wasm === 'string' && wasm.endsWith('/')));
}
