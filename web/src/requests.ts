// What callers give, checked, as the worker's requests. Whoever writes JavaScript has no types to hold on to: a name that
// is not known and a value of another kind are refused with what was meant.
import { embeddingOptions, kvTypes, openOptions, poolings, promptOptions, samplerOptions } from './boundary.gen.js';
import type { OptionRules } from './boundary.gen.js';
import { GiB, MAX_THREADS, MiB, PAGE } from './constants.js';
import type { EmbedRequest, GenerateRequest, LoadRequest, WasmSource } from './contract.js';
import { QSFError } from './errors.js';
import { absolute, keepsModels, ownFile } from './platform.js';
import { checkKind, checkKnown, checkName, checkOption, checkOptions } from './options.js';
import type {
  EmbedOptions,
  GenerateOptions,
  LoadOptions,
  ModelSource,
  NetworkOptions,
  Prompt,
  Variant,
} from './types.js';

const DEFAULT_MEMORY = 256 * MiB;
/** With a page more, sizes of 32 bits would not hold the memory's own. */
const MOST_MEMORY = 4 * GiB - PAGE;
const MOST_STOPS = 8;
const VARIANTS: readonly Variant[] = ['relaxed', 'relaxedpairs', 'simd'];
const CREDENTIALS: readonly RequestCredentials[] = ['omit', 'same-origin', 'include'];

type Names<T> = Record<keyof T, true>;
const LOAD = {
  ...{ memory: true, onProgress: true, onWarning: true, signal: true, kv: true, cache: true, background: true },
  ...{ variant: true, threads: true, network: true, maxSeqLen: true, streamAll: true, workerUrl: true, wasmUrl: true },
  ...{ wasmBinary: true, cacheLimit: true, persist: true, shared: true },
} satisfies Names<LoadOptions>;
const GENERATE = { ...samplerOptions, ...promptOptions, stop: true, signal: true, continue: true } satisfies {
  [K in keyof GenerateOptions]-?: unknown;
};
/** What the package asks for itself. */
const OWN = ['allLogits', 'logitsFrom'];
const EMBED = { ...embeddingOptions, pooling: true, normalize: true, signal: true } satisfies {
  [K in keyof EmbedOptions]-?: unknown;
};

const whole = (fallback: number, least = 0) => ({ type: 'u32', fallback, least, most: 0xffffffff }) as const;
/** What is a number of NetworkOptions. */
type NetworkNumbers = Pick<Required<NetworkOptions>, 'retries' | 'retryDelay' | 'parallel' | 'timeout'>;
const networkNumbers: OptionRules<NetworkNumbers> = {
  retries: whole(5),
  retryDelay: whole(400),
  parallel: whole(3, 1),
  timeout: whole(30_000, 1),
};
const NETWORK = { ...networkNumbers, headers: true, credentials: true } satisfies {
  [K in keyof NetworkOptions]-?: unknown;
};

export async function loadRequest(source: ModelSource, options: LoadOptions): Promise<LoadRequest> {
  checkKnown('load()', options, LOAD);
  checkKind('onProgress', 'function', options.onProgress);
  checkKind('onWarning', 'function', options.onWarning);
  checkKind('shared', 'boolean', options.shared);
  checkKind('persist', 'boolean', options.persist);
  checkSignal(options.signal);
  const { cacheLimit } = options;
  // A module given by itself is one of both kinds.
  const single = options.wasmBinary !== undefined || (options.wasmUrl !== undefined && !folder(options.wasmUrl));
  const threads = options.threads ?? (single ? 1 : undefined);
  return {
    memory: memoryOf(options.memory),
    open: checkOptions(openOptions, { maxSeqLen: options.maxSeqLen, streamAll: options.streamAll }),
    kv: checkName('kv', kvTypes, options.kv),
    cache: (checkKind('cache', 'boolean', options.cache) ?? true) && keepsModels,
    cacheLimit: cacheLimit === undefined ? undefined : checkOption('cacheLimit', CACHE_LIMIT, cacheLimit),
    background: checkKind('background', 'boolean', options.background) ?? false,
    variant: checkName('variant', VARIANTS, options.variant),
    threads: threads === undefined ? undefined : checkOption('threads', THREADS, threads),
    network: networkOf(options.network ?? {}),
    source: await sourceOf(source),
    wasm: wasmOf(options),
  };
}

const folder = (url: string | URL) => String(url).endsWith('/');

function wasmOf({ wasmUrl, wasmBinary }: LoadOptions): WasmSource {
  if (wasmUrl !== undefined && wasmBinary !== undefined)
    throw new QSFError('bad_argument', 'wasmUrl and wasmBinary are both given; one of them says where the module is.');
  if (wasmUrl !== undefined) return ownFile('wasmUrl', wasmUrl);
  if (wasmBinary === undefined || wasmBinary instanceof ArrayBuffer) return wasmBinary && new Uint8Array(wasmBinary);
  if (ArrayBuffer.isView(wasmBinary))
    return new Uint8Array(wasmBinary.buffer, wasmBinary.byteOffset, wasmBinary.byteLength);
  throw new QSFError(
    'bad_argument',
    `wasmBinary is ${kindOf(wasmBinary)}; it must be an ArrayBuffer or a view of one.`,
  );
}

const CACHE_LIMIT = { type: 'real', fallback: 0, least: 0, most: Number.MAX_SAFE_INTEGER } as const;
export const THREADS = { type: 'u32', fallback: 1, least: 1, most: MAX_THREADS } as const;

export function generateRequest(prompt: Prompt, options: GenerateOptions): GenerateRequest {
  checkKnown('generate()', options, GENERATE, OWN);
  checkSignal(options.signal);
  const seed = options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
  return {
    ...checkOptions(samplerOptions, { ...options, seed }),
    ...checkOptions(promptOptions, { ...options, allLogits: false, logitsFrom: 0 }),
    prompt: promptOf(prompt),
    stop: stopsOf(options.stop ?? []),
    continue: checkKind('continue', 'boolean', options.continue) ?? false,
  };
}

export function embedRequest(texts: readonly Prompt[], options: EmbedOptions): EmbedRequest {
  checkKnown('embed()', options, EMBED);
  checkSignal(options.signal);
  const { pooling, normalize, ...rest } = options;
  return {
    ...checkOptions(embeddingOptions, rest),
    texts: texts.map(promptOf),
    pooling: checkName('pooling', poolings.slice(1), pooling),
    normalize: checkKind('normalize', 'boolean', normalize),
  };
}

export function tokenIds(tokens: ArrayLike<number>): Uint32Array {
  return Uint32Array.from(tokens, (id) => {
    if (Number.isInteger(id) && id >= 0 && id <= 0xffffffff) return id;
    throw new QSFError('bad_token', `${id} is not a token id.`);
  });
}

function promptOf(prompt: Prompt): string | Uint32Array {
  if (typeof prompt === 'string') return prompt;
  if (Array.isArray(prompt) || ArrayBuffer.isView(prompt)) return tokenIds(prompt);
  throw new QSFError('bad_argument', `The prompt is ${kindOf(prompt)}; it must be text or token ids.`);
}

function stopsOf(stop: string | readonly string[]): string[] {
  const stops: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  if (stops.length <= MOST_STOPS && stops.every((text) => typeof text === 'string')) return [...stops];
  const given = Array.isArray(stop) ? `a list of ${stop.length}` : kindOf(stop);
  throw new QSFError('bad_argument', `stop is ${given}; it must be a text or a list of at most ${MOST_STOPS} texts.`);
}

function memoryOf(given = DEFAULT_MEMORY): number {
  const memory = Math.ceil(given / PAGE) * PAGE;
  if (typeof given === 'number' && memory > 0 && memory <= MOST_MEMORY) return memory;
  throw new QSFError(
    'bad_argument',
    `memory is ${String(given)} bytes; it must be more than 0 and at most ${MOST_MEMORY} (4 GiB - 64 KiB).`,
  );
}

function networkOf(network: NetworkOptions): NetworkOptions {
  checkKnown('network', network, NETWORK);
  checkOptions(networkNumbers, network);
  checkKind('network.headers', 'object', network.headers);
  checkName('network.credentials', CREDENTIALS, network.credentials);
  return network;
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new QSFError('bad_argument', `signal is ${kindOf(signal)}; it must be an AbortSignal.`);
}

/** An absolute address, or a file. */
async function sourceOf(source: ModelSource): Promise<string | Blob> {
  if (source instanceof Blob) return source;
  if (typeof source === 'string' || source instanceof URL) return absolute(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source))
    return new Blob([source as ArrayBufferView<ArrayBuffer>]);
  if (typeof (source as FileSystemFileHandle | undefined)?.getFile === 'function') return source.getFile();
  throw new QSFError(
    'bad_argument',
    `The model is ${kindOf(source)}; it must be an address, a File or Blob, a FileSystemFileHandle or an ArrayBuffer.`,
  );
}

/** What a value is, for those that cannot be shown. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null || value === undefined || typeof value === 'number') return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
