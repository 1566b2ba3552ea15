// The page's side: a model in a worker of its own.
import * as Comlink from './comlink.js';

import { kvTypes, openOptions, promptOptions, samplerOptions } from './boundary.gen.js';
import { cache } from './cache.js';
import { GiB, MiB, PAGE } from './constants.js';
import { unwrap } from './contract.js';
import type { Batch, EngineWorker, GenerateRequest, LoadRequest, Reply } from './contract.js';
import { QSFError } from './errors.js';
import { checkName, checkOptions } from './options.js';
import type { GenerateOptions, LoadOptions, ModelSource, Prompt, Stats, Variant } from './types.js';

const DEFAULT_MEMORY = 256 * MiB;
const VARIANTS: readonly Variant[] = ['relaxed', 'simd'];
/** How long close() waits for the worker to let go of the cache before it is ended. */
const CLOSE_PATIENCE = 500;

/** A language model inside a fixed memory budget. */
export class QSF {
  /** Models kept in the browser's private file system. */
  static readonly cache = cache;

  readonly #worker: Worker;
  readonly #remote: Comlink.Remote<EngineWorker>;
  /** Rejects when the worker could not run. */
  readonly #failed: Promise<never>;
  /** Rejects when the model is closed. */
  readonly #closed: Promise<never>;
  #reject!: (error: QSFError) => void;
  #state: 'idle' | 'generating' | 'closed' = 'idle';
  /** Settles when the generation that was told to stop has stopped. */
  #stopping: Promise<unknown> = Promise.resolve();

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.#remote = Comlink.wrap<EngineWorker>(worker);
    this.#failed = new Promise((_, reject) => {
      worker.addEventListener('error', (event) => {
        const why = event.message || "its script did not load; see the console and the page's Content-Security-Policy";
        reject(new QSFError('unsupported_host', `The worker could not run: ${why}.`));
      });
    });
    this.#failed.catch(() => {});
    this.#closed = new Promise((_, reject) => (this.#reject = reject));
    this.#closed.catch(() => {});
  }

  /**
   * Opens a model: reads its tables, plans the memory and fetches the weights. Rejects with a QSFError, or with the
   * signal's reason.
   */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<QSF> {
    const { signal, onProgress } = options;
    signal?.throwIfAborted();
    const request = loadRequest(source, options);
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'qsf' });
    const llm = new QSF(worker);
    const abort = onAbort(signal);
    try {
      const report = Comlink.proxy((progress: Parameters<NonNullable<typeof onProgress>>[0]) => onProgress?.(progress));
      unwrap(await Promise.race([llm.#remote.load(request, report), llm.#failed, abort.rejection]));
      return llm;
    } catch (error) {
      void llm.close();
      throw error;
    } finally {
      abort.dispose();
    }
  }

  /**
   * Generates text piece by piece. Leaving the loop or aborting stops the computation; the next generation begins a
   * fresh sequence unless `continue` is set. One generation at a time.
   */
  async *generate(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<string, void, undefined> {
    const { signal } = options;
    signal?.throwIfAborted();
    const request = generateRequest(prompt, options);
    this.#claim();
    const abort = onAbort(signal, () => void this.#stop());
    let running = true;
    try {
      await Promise.race([this.#stopping, abort.rejection]);
      await this.#ask((worker) => worker.start(request), abort.rejection);
      while (running) {
        signal?.throwIfAborted();
        const batch: Batch = await this.#ask((worker) => worker.next(), abort.rejection);
        running = !batch.done;
        for (const piece of batch.pieces) {
          signal?.throwIfAborted();
          yield piece;
        }
      }
    } finally {
      abort.dispose();
      // An abort has told the worker to stop and does not wait for it; the next generation does.
      if (running && !signal?.aborted) await this.#stop();
      if (this.#isOpen()) this.#state = 'idle';
    }
  }

  /** What is where in memory, what was read, and how fast it went; also while a generation runs. */
  async stats(): Promise<Stats> {
    this.#checkOpen();
    await this.#stopping; // what was aborted has ended
    return this.#ask((worker) => worker.stats());
  }

  /** Token ids of `text`, nothing added. With `special`, added tokens in the text become their ids. */
  async tokenize(text: string, { special = true }: { special?: boolean } = {}): Promise<number[]> {
    this.#checkOpen();
    return Array.from(await this.#ask((worker) => worker.tokenize(text, special)));
  }

  /** The text that token ids stand for; bytes that are not valid UTF-8 come out as U+FFFD. */
  async detokenize(tokens: ArrayLike<number>): Promise<string> {
    this.#checkOpen();
    const ids = tokenIds(tokens);
    return this.#ask((worker) => worker.detokenize(ids));
  }

  /**
   * Ends the worker and gives its memory back. What was verified stays in the cache; what is still asked of the model, a
   * generation too, ends in `cancelled`.
   */
  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#reject(new QSFError('cancelled', 'The model was closed.'));
    const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE));
    await Promise.race([this.#remote.close(), patience, this.#failed]).catch(() => {});
    this.#remote[Comlink.releaseProxy]();
    this.#worker.terminate();
  }

  /** What the worker replies; ends with the worker, with the model, and with what `others` reject with. */
  async #ask<T>(
    question: (worker: Comlink.Remote<EngineWorker>) => Promise<Reply<T>>,
    ...others: Promise<never>[]
  ): Promise<T> {
    const reply = this.#isOpen() ? question(this.#remote) : this.#closed;
    return unwrap(await Promise.race([reply, this.#failed, this.#closed, ...others]));
  }

  #claim(): void {
    this.#checkOpen();
    if (this.#state === 'generating') {
      throw new QSFError(
        'bad_state',
        'A generation is running on this model: finish it, break out of its loop or abort it first.',
      );
    }
    this.#state = 'generating';
  }

  #isOpen(): boolean {
    return this.#state !== 'closed';
  }

  #checkOpen(): void {
    if (!this.#isOpen()) throw new QSFError('bad_state', 'The model was closed.');
  }

  async #stop(): Promise<void> {
    if (!this.#isOpen()) return;
    const stopped = Promise.race([this.#remote.stop(), this.#failed, this.#closed]).catch(() => {});
    this.#stopping = stopped;
    await stopped;
  }
}

/** A promise that rejects with the signal's reason when it aborts; `react` is called first. */
function onAbort(signal: AbortSignal | undefined, react?: () => void) {
  let listener: (() => void) | undefined;
  const rejection = new Promise<never>((_, reject) => {
    if (!signal) return;
    listener = () => {
      react?.();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', listener, { once: true });
  });
  rejection.catch(() => {});
  return {
    rejection,
    dispose: () => {
      if (listener) signal?.removeEventListener('abort', listener);
    },
  };
}

function loadRequest(source: ModelSource, options: LoadOptions): LoadRequest {
  const memory = Math.ceil((options.memory ?? DEFAULT_MEMORY) / PAGE) * PAGE;
  if (!(memory > 0 && memory <= 4 * GiB)) {
    throw new QSFError('bad_argument', `memory is ${options.memory} bytes; it must be more than 0 and at most 4 GiB.`);
  }
  return {
    source: source instanceof Blob ? source : absolute(source),
    memory,
    open: checkOptions(openOptions, { maxSeqLen: options.maxSeqLen, streamAll: options.streamAll }),
    kv: checkName('kv', kvTypes, options.kv),
    cache: options.cache ?? true,
    background: options.background ?? false,
    variant: checkName('variant', VARIANTS, options.variant),
    threads: options.threads,
    network: options.network ?? {},
  };
}

function absolute(address: string | URL): string {
  let url: URL;
  try {
    url = new URL(address, globalThis.document?.baseURI ?? globalThis.location.href);
  } catch {
    throw new QSFError('bad_argument', `"${String(address)}" is not an address.`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new QSFError('bad_argument', `"${url.href}" is not an http(s) address; give local files as a File or Blob.`);
  }
  url.hash = '';
  return url.href;
}

function generateRequest(prompt: Prompt, options: GenerateOptions): GenerateRequest {
  const seed = options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
  const stop = options.stop ?? [];
  return {
    ...checkOptions(samplerOptions, { ...options, seed }),
    ...checkOptions(promptOptions, { ...options, allLogits: false, logitsFrom: 0 }),
    prompt: typeof prompt === 'string' ? prompt : tokenIds(prompt),
    stop: typeof stop === 'string' ? [stop] : [...stop],
    continue: options.continue ?? false,
  };
}

function tokenIds(tokens: ArrayLike<number>): Uint32Array {
  return Uint32Array.from(tokens, (id) => {
    if (Number.isInteger(id) && id >= 0 && id <= 0xffffffff) return id;
    throw new QSFError('bad_token', `${id} is not a token id.`);
  });
}
