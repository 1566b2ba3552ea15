/// <reference lib="esnext.disposable" preserve="true" />
// The page's side: a model in a worker of its own.
import { cache } from './cache.js';
import { unwrap } from './contract.js';
import type { Batch, Reply } from './contract.js';
import { QSFError } from './errors.js';
import { ownWorker } from './host.js';
import type { Host, RemoteEngine } from './host.js';
import { askToPersist } from './persist.js';
import { ownFile } from './platform.js';
import { embedRequest, generateRequest, loadRequest, tokenIds } from './requests.js';
import { canShare, sharedEngine } from './shared.js';
import type {
  EmbedOptions,
  GenerateOptions,
  GenerationResult,
  GenerationStream,
  LoadOptions,
  ModelSource,
  Progress,
  Prompt,
  Stats,
  Trace,
} from './types.js';

/** Milliseconds in which a worker is to let go of the cache and end those that it started. */
const CLOSE_PATIENCE = 500;

/** Settles a generation's result; what comes second changes nothing. */
interface Outcome {
  resolve(result: GenerationResult): void;
  reject(error: unknown): void;
}

/** Older browsers have no such symbol; those who write `await using` for them agree on this one. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** Ends the engines of models that nobody holds any more and nobody closed. */
const abandoned = new FinalizationRegistry<Host>((host) => void end(host));

async function end(host: Host): Promise<void> {
  const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE));
  await Promise.race([host.remote.close(), patience, host.failed]).catch(() => {});
  host.end();
}

/** A language model inside a fixed memory budget. */
export class QSF {
  /** Models kept in the browser's private file system. */
  static readonly cache = cache;

  readonly #host: Host;
  readonly #remote: RemoteEngine;
  /** Rejects when the worker could not run. */
  readonly #failed: Promise<never>;
  /** Rejects when the model is closed. */
  readonly #closed: Promise<never>;
  #reject!: (error: QSFError) => void;
  #state: 'idle' | 'generating' | 'closed' = 'idle';
  /** Settles when the generation that was told to stop has stopped. */
  #stopping: Promise<unknown> = Promise.resolve();

  private constructor(host: Host) {
    this.#host = host;
    abandoned.register(this, host, this);
    this.#remote = host.remote;
    this.#failed = host.failed;
    this.#closed = new Promise((_, reject) => (this.#reject = reject));
    this.#closed.catch(() => {});
  }

  /**
   * Opens a model: reads its tables, plans the memory and fetches the weights. Rejects with a QSFError, or with the
   * signal's reason.
   */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<QSF> {
    const { signal, onProgress, onWarning = (warning) => console.warn(`QSF: ${warning}`) } = options;
    const request = await loadRequest(source, options);
    signal?.throwIfAborted();
    const workerUrl = options.workerUrl === undefined ? undefined : ownFile('workerUrl', options.workerUrl);
    const isShared = options.shared === true && canShare(request);
    const starting = isShared ? Promise.resolve(sharedEngine(request, workerUrl)) : ownWorker(workerUrl);
    const abort = onAbort(signal);
    let llm: QSF | undefined;
    try {
      llm = new QSF(await Promise.race([starting, abort.rejection]));
      const report = (progress: Progress) => onProgress?.(progress);
      const warn = (warning: string) => onWarning(warning);
      const kept = unwrap(await Promise.race([llm.#remote.load(request, report, warn), llm.#failed, abort.rejection]));
      if (kept && options.persist !== false) void askToPersist();
      return llm;
    } catch (error) {
      if (llm) void llm.close();
      else void starting.then((host) => host.end()).catch(() => {});
      throw error;
    } finally {
      abort.dispose();
    }
  }

  /**
   * Generates text piece by piece. Leaving the loop or aborting stops the computation; the next generation begins a
   * fresh sequence unless `continue` is set. One generation at a time.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): GenerationStream {
    let outcome!: Outcome;
    const result = new Promise<GenerationResult>((resolve, reject) => (outcome = { resolve, reject }));
    result.catch(() => {}); // whoever iterates is told as well
    return Object.assign(this.#pieces(prompt, options, outcome), { result });
  }

  async *#pieces(
    prompt: Prompt,
    options: GenerateOptions,
    outcome: Outcome,
  ): AsyncGenerator<string, GenerationResult, undefined> {
    const { signal } = options;
    let abort: ReturnType<typeof onAbort> | undefined;
    let running = true;
    try {
      const request = generateRequest(prompt, options);
      signal?.throwIfAborted();
      this.#claim();
      abort = onAbort(signal, () => void this.#stop());
      await Promise.race([this.#stopping, abort.rejection]);
      await this.#ask((worker) => worker.start(request), abort.rejection);
      for (;;) {
        signal?.throwIfAborted();
        const { pieces, result }: Batch = await this.#ask((worker) => worker.next(), abort.rejection);
        if (result) running = false;
        for (const piece of pieces) {
          signal?.throwIfAborted();
          yield piece;
        }
        if (!result) continue;
        outcome.resolve(result);
        return result;
      }
    } catch (error) {
      outcome.reject(error);
      throw error;
    } finally {
      if (abort) {
        abort.dispose();
        // An abort has told the worker to stop and does not wait for it; the next generation does.
        if (running && !signal?.aborted) await this.#leave(outcome);
        if (this.#isOpen()) this.#state = 'idle';
      }
    }
  }

  /** The embeddings of texts, each of `stats().model.dim` values; the next generation begins a fresh sequence. */
  embed(text: string, options?: EmbedOptions): Promise<Float32Array>;
  embed(texts: readonly Prompt[], options?: EmbedOptions): Promise<Float32Array[]>;
  async embed(texts: string | readonly Prompt[], options: EmbedOptions = {}): Promise<Float32Array | Float32Array[]> {
    const { signal } = options;
    signal?.throwIfAborted();
    const request = embedRequest(typeof texts === 'string' ? [texts] : texts, options);
    this.#claim();
    const abort = onAbort(signal, () => void this.#stop());
    try {
      await Promise.race([this.#stopping, abort.rejection]);
      const embeddings = await this.#ask((worker) => worker.embed(request), abort.rejection);
      return typeof texts === 'string' ? embeddings[0]! : embeddings;
    } finally {
      abort.dispose();
      if (this.#isOpen()) this.#state = 'idle';
    }
  }

  /** What is where in memory, what was read, and how fast it went; also while a generation runs. */
  async stats(): Promise<Stats> {
    this.#checkOpen();
    await this.#stopping; // what was aborted has ended
    return this.#ask((worker) => worker.stats());
  }

  /** What the worker did in the last moments: reads of segments, waiting for them, computing. */
  async trace(): Promise<Trace> {
    this.#checkOpen();
    return this.#ask((worker) => worker.trace());
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
    abandoned.unregister(this);
    await end(this.#host);
  }

  /** Ends a generation whose loop was left. */
  async #leave(outcome: Outcome): Promise<void> {
    await this.#stop();
    try {
      const { result } = await this.#ask((worker) => worker.next());
      if (result) outcome.resolve(result);
    } catch (error) {
      outcome.reject(error);
    }
  }

  /** close(), for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What the worker replies; ends with the worker, with the model, and with what `others` reject with. */
  async #ask<T>(question: (engine: RemoteEngine) => Promise<Reply<T>>, ...others: Promise<never>[]): Promise<T> {
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
