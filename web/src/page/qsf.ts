/// <reference lib="esnext.disposable" preserve="true" />
// The page's side: a model in a worker of its own.
import { streamOf } from './answer.js';
import type { Items, Outcome } from './answer.js';
import { cache } from './cache.js';
import { saved } from './saved.js';
import { unwrap } from '../contract.js';
import type { AnswerPiece } from '../boundary.gen.js';
import type { Batch, Call, EmbedRequest, GenerateRequest, RemoteEngine, Reply } from '../contract.js';
import { Conversation } from './conversation.js';
import type { ConversationOptions } from '../conversation-types.js';
import { QSFError, errorInfo } from '../errors.js';
import { guarded } from './guarded.js';
import { ownWorker } from './host.js';
import type { Host } from './host.js';
import { chatCompletions, completions, embeddings } from './openai.js';
import { models } from '../models.js';
import { Answer, textOf } from './parts.js';
import { askToPersist } from './persist.js';
import { ownFile } from '../platform.js';
import { randomName } from '../random-name.js';
import {
  chatRequest,
  detokenizeRequest,
  embedRequest,
  generateRequest,
  loadRequest,
  positionOf,
  renderRequest,
  rerankRequest,
  restoreRequest,
  saveRequest,
  sequenceOf,
  tokenizeRequest,
} from './requests.js';
import { canShare, sharedEngine } from './shared.js';
import type { Chat, ChatResult, ChatStream } from '../answer-types.js';
import type { Completions, Embeddings } from '../openai-types.js';
import type { Progress } from '../progress-types.js';
import type {
  ChatMessage,
  ChatOptions,
  EmbedOptions,
  GenerateOptions,
  GenerationResult,
  GenerationStream,
  LoadOptions,
  ModelInfo,
  ModelSource,
  Prompt,
  Restored,
  SaveOptions,
  Stats,
  TemplateOptions,
  Trace,
} from '../types.js';
import type { Ranked, RerankOptions } from '../rerank-types.js';
import type { SequenceOptions } from '../sequence-types.js';

/** Milliseconds in which a worker must release the cache and end the workers that it started. */
const CLOSE_PATIENCE = 500;

type Listening = Pick<GenerateOptions, 'signal' | 'onPromptProgress' | 'sequence'>;

/** The mapping of a generation's pieces and of its result. */
interface Reading<T, R> {
  /** Returns the items of a piece, which came with these parts of an answer. */
  add(parts: readonly AnswerPiece[], piece: string): readonly T[];
  finish(result: GenerationResult): R;
}

/** A generation as it is. */
const plain = {
  add: (_: readonly AnswerPiece[], piece: string) => [piece],
  finish: (result: GenerationResult) => result,
  textOf: (piece: string) => piece,
};

/** Older browsers have no such symbol; those who write `await using` for them agree on this one. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** Ends the engines of models that were collected without close(). */
const abandoned = new FinalizationRegistry<Host>((host) => void end(host));

async function end(host: Host): Promise<void> {
  const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE));
  await Promise.race([host.remote.close(), patience, host.failed]).catch(() => {});
  host.end();
}

/** A language model inside a fixed memory budget. After close(), all other calls reject with bad_state. */
export class QSF {
  /** Models kept in the browser's private file system. */
  static readonly cache = cache;
  /** Small models of the Hugging Face Hub, smallest first for each use. load() takes any other model too. */
  static readonly models = models;
  /** Sequences that save() stored under names in the browser's private file system. */
  static readonly saved = saved;

  /** Answers conversations: `llm.chat(messages)`, and `llm.chat.completions.create(…)` in OpenAI's shape. */
  readonly chat: Chat = Object.assign(
    (messages: string | readonly ChatMessage[], options: ChatOptions = {}) => this.#answer(messages, options),
    { completions: chatCompletions(this) },
  );
  /** Continues texts in OpenAI's shape. */
  readonly completions: Completions = completions(this);
  /** Embeds texts in OpenAI's shape. */
  readonly embeddings: Embeddings = embeddings(this);
  readonly #host: Host;
  readonly #remote: RemoteEngine;
  /** Rejects when the worker could not run. */
  readonly #failed: Promise<never>;
  /** Rejects when the model is closed. */
  readonly #closed: Promise<never>;
  #reject!: (error: QSFError) => void;
  #isClosed = false;
  /** The name of this model among those of all tabs, and the number of its calls that took a sequence. */
  readonly #caller = randomName();
  #calls = 0;
  /** Settles once the stopped generation has ended. */
  #stopping: Promise<unknown> = Promise.resolve();

  private constructor(host: Host) {
    // JavaScript callers can call a private constructor.
    if (typeof (host as Host | null)?.remote !== 'object')
      throw new QSFError('bad_argument', 'a QSF is made by QSF.load(), not by new');
    this.#host = host;
    abandoned.register(this, host, this);
    this.#remote = host.remote;
    this.#failed = host.failed;
    this.#closed = new Promise((_, reject) => (this.#reject = reject));
    this.#closed.catch(() => {});
  }

  /**
   * Opens a model: reads its tables, plans the memory and fetches the weights. Rejects with a QSFError, which is
   * bad_argument for an unknown or invalid option, or with the signal's reason.
   */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<QSF> {
    const request = await loadRequest(source, options);
    const { signal, onProgress, onWarning = (warning) => console.warn(`QSF: ${warning}`) } = options;
    signal?.throwIfAborted();
    const workerUrl = options.workerUrl === undefined ? undefined : ownFile('workerUrl', options.workerUrl);
    const isShared = options.shared === true && canShare(request);
    const starting = isShared ? sharedEngine(request, workerUrl) : ownWorker(workerUrl);
    const abort = onAbort(signal);
    let llm: QSF | undefined;
    try {
      llm = new QSF(await Promise.race([starting, abort.rejection]));
      const report = guarded((progress: Progress) => onProgress?.(progress));
      const warn = guarded(onWarning);
      const kept = await llm.#ask((worker) => worker.load(request, report, warn), abort.rejection);
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
   * Generates text piece by piece. Leaving the loop or aborting stops the computation, and the sequence ends with the
   * last piece that was yielded. The next generation begins a sequence anew unless `continue` is set. If no sequence is
   * free, a generation waits for its turn.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): GenerationStream {
    const request = () => generateRequest(prompt, options);
    return streamOf((outcome) => this.#items(request, options, plain, outcome), plain.textOf).stream;
  }

  /** Returns the text that a conversation becomes for chat(). Rejects with the refusal of the template, if it has one. */
  async render(messages: string | readonly ChatMessage[], options: TemplateOptions = {}): Promise<string> {
    this.#checkOpen();
    const request = renderRequest(messages, options);
    return this.#ask((worker) => worker.render(request));
  }

  /** Returns a new conversation, which keeps its messages. Throws bad_argument. */
  conversation(options: ConversationOptions = {}): Conversation {
    return new Conversation(this, options);
  }

  #answer(messages: string | readonly ChatMessage[], options: ChatOptions): ChatStream {
    const request = () => chatRequest(messages, options);
    const answer = new Answer();
    const begin = (outcome: Outcome<ChatResult>) => this.#items(request, options, answer, outcome);
    const { stream, items } = streamOf(begin, textOf);
    return Object.assign(stream, { parts: items });
  }

  async *#items<T, R extends GenerationResult>(
    requested: () => GenerateRequest,
    options: Listening,
    reading: Reading<T, R>,
    outcome: Outcome<R>,
  ): Items<T, R> {
    let signal: AbortSignal | undefined;
    let abort: ReturnType<typeof onAbort> | undefined;
    let running = true;
    let call: Call | undefined;
    /** Pieces yielded so far; undefined until the worker has begun the generation. */
    let shown: number | undefined;
    /** Settles the result, once the model is free for the next call. */
    let settle: (() => void) | undefined;
    try {
      const request = requested(); // throws for options that are none
      ({ signal } = options);
      signal?.throwIfAborted();
      const { id } = (call = this.#call(options));
      const begun = call;
      abort = onAbort(signal, () => void this.#stop(id, shown));
      await Promise.race([this.#stopping, abort.rejection]);
      await this.#ask((worker) => worker.start(begun, request), abort.rejection);
      shown = 0;
      const report = guarded(options.onPromptProgress ?? (() => {}));
      for (;;) {
        signal?.throwIfAborted();
        const batch: Batch = await this.#ask((worker) => worker.next(id), abort.rejection);
        const { pieces, parts = [], prompt, result } = batch;
        if (prompt) report(prompt);
        for (const [i, piece] of pieces.entries()) {
          signal?.throwIfAborted();
          shown++;
          yield reading.add(parts[i] ?? [], piece);
        }
        if (!result) continue;
        running = false;
        const finished = reading.finish(result);
        settle = () => outcome.resolve(finished);
        return finished;
      }
    } catch (error) {
      settle = () => outcome.reject(error);
      throw error;
    } finally {
      abort?.dispose();
      // An abort has sent the worker a stop and does not wait for it; the next generation does.
      if (call && running && !signal?.aborted) settle = await this.#leave(call.id, reading, outcome, shown, settle);
      if (settle) settle();
      else outcome.reject(signal?.reason); // the loop was left after an abort
    }
  }

  /**
   * Ends a sequence, by default that of the last generation, after its first `position` tokens, such as the `position` of
   * an earlier result. The next generation continues from there if `continue` is set. Waits for its turn. Rejects with
   * bad_argument if the sequence has fewer tokens. Layers with a recurrent state, and windows that have moved on,
   * cannot return to every position. The next generation then computes earlier tokens again, which takes time and gives
   * the same text.
   */
  async rewind(position: number, options: SequenceOptions = {}): Promise<void> {
    const n = positionOf(position);
    const call = this.#call(sequenceOf('rewind()', options));
    await this.#inTurn((worker) => worker.rewind(call, n));
  }

  /**
   * Saves a sequence, by default that of the last generation: its tokens, and the keys, values and states that were
   * computed. The file continues in another page, or in a native program, with the same bits. Waits for its turn.
   * Rejects with io_error if the browser does not store it under the name that was given.
   */
  async save(options: SaveOptions = {}): Promise<Blob> {
    const request = saveRequest(options);
    const call = this.#call(options);
    return this.#inTurn((worker) => worker.save(call, request));
  }

  /**
   * Replaces a sequence, by default one that is free, by a saved one: a file of save() or of a native program, or the
   * name under which save() stored it. generate() with `continue` continues it, and chat() computes only the rest. A
   * file that does not fit or is damaged leaves the sequence as it was: rejects with mismatch for another model or KV
   * type, context_full for a context that is too short, and bad_checksum for damage.
   */
  async restore(from: Blob | string, options: SequenceOptions = {}): Promise<Restored> {
    const request = restoreRequest(from);
    const call = this.#call(sequenceOf('restore()', options));
    return this.#inTurn((worker) => worker.restore(call, request));
  }

  /**
   * Returns the embeddings of texts, each of `stats().model.dim` values, in the order of the texts. They are computed in
   * a sequence that is free, which then has no text to continue. Waits for its turn.
   */
  embed(text: string, options?: EmbedOptions): Promise<Float32Array>;
  embed(texts: readonly Prompt[], options?: EmbedOptions): Promise<Float32Array[]>;
  embed(texts: string | readonly Prompt[], options?: EmbedOptions): Promise<Float32Array | Float32Array[]>;
  async embed(texts: string | readonly Prompt[], options: EmbedOptions = {}): Promise<Float32Array | Float32Array[]> {
    const embeddings = await this.#embed(embedRequest(typeof texts === 'string' ? [texts] : texts, options), options);
    return typeof texts === 'string' ? embeddings[0]! : embeddings;
  }

  /**
   * Returns how well each text answers a query, the best one first. The model must be a reranker; another one rejects
   * with unsupported. Texts are scored one after the other, as embed() computes embeddings.
   */
  async rerank(query: string, texts: readonly string[], options: RerankOptions = {}): Promise<Ranked[]> {
    const scores = await this.#embed(rerankRequest(query, texts, options), options);
    const ranked = scores.map(([score], index) => ({ index, score: score! }));
    return ranked.sort((a, b) => b.score - a.score);
  }

  async #embed(request: EmbedRequest, { signal }: { signal?: AbortSignal | undefined }): Promise<Float32Array[]> {
    signal?.throwIfAborted();
    const call = this.#call({});
    const abort = onAbort(signal, () => void this.#stop(call.id));
    try {
      return await this.#inTurn((worker) => worker.embed(call, request), abort.rejection);
    } finally {
      abort.dispose();
    }
  }

  /** Returns the memory map, the bytes read and the speed. Works during a generation too. */
  async stats(): Promise<Stats> {
    this.#checkOpen();
    await this.#stopping; // an aborted generation has ended
    return this.#ask((worker) => worker.stats());
  }

  /** Returns the last activities of the worker: reads of segments, waits for them, and computation. */
  async trace(): Promise<Trace> {
    this.#checkOpen();
    return this.#ask((worker) => worker.trace());
  }

  /**
   * Returns the token ids of `text`, with nothing added. With `special`, which is the default, added tokens in the text
   * become their ids.
   */
  async tokenize(text: string, options: { special?: boolean | undefined } = {}): Promise<number[]> {
    this.#checkOpen();
    const request = tokenizeRequest(text, options);
    return Array.from(await this.#ask((worker) => worker.tokenize(...request)));
  }

  /**
   * Returns the text of token ids, with that of control tokens such as <|endoftext|> only if `special` is set. Bytes
   * that are not valid UTF-8 become U+FFFD. Rejects with bad_token for an id outside the vocabulary.
   */
  async detokenize(tokens: ArrayLike<number>, options: { special?: boolean | undefined } = {}): Promise<string> {
    this.#checkOpen();
    const [ids, special] = detokenizeRequest(tokens, options);
    return this.#ask((worker) => worker.detokenize(ids, special));
  }

  /** Returns the model's name, its special tokens, its chat template and other information that needs no weights. */
  async info(): Promise<ModelInfo> {
    this.#checkOpen();
    return this.#ask((worker) => worker.info());
  }

  /**
   * Ends the worker and frees its memory. Verified bytes stay in the cache. Calls that are still under way, a
   * generation included, reject with `cancelled`.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reject(new QSFError('cancelled', 'the model was closed'));
    abandoned.unregister(this);
    await end(this.#host);
  }

  /** Ends a generation after its loop was left, or failed. Returns the function that settles its result. */
  async #leave<T, R extends GenerationResult>(
    id: string,
    reading: Reading<T, R>,
    outcome: Outcome<R>,
    shown: number | undefined,
    failed: (() => void) | undefined,
  ): Promise<() => void> {
    try {
      const result = await this.#stop(id, shown);
      if (!result) throw new QSFError('cancelled', 'the generation was stopped');
      return failed ?? (() => outcome.resolve(reading.finish(result)));
    } catch (error) {
      return failed ?? (() => outcome.reject(error));
    }
  }

  /** close(), for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Returns the worker's reply. Rejects when the worker fails, when the model is closed, and when one of `others`
   * rejects.
   */
  async #ask<T>(question: (engine: RemoteEngine) => Promise<Reply<T>>, ...others: Promise<never>[]): Promise<T> {
    const reply = this.#isClosed ? this.#closed : question(this.#remote).catch(told);
    return unwrap(await Promise.race([reply, this.#failed, this.#closed, ...others]));
  }

  /** Asks for a call that takes a sequence, after the end of aborted ones. */
  async #inTurn<T>(question: (engine: RemoteEngine) => Promise<Reply<T>>, ...others: Promise<never>[]): Promise<T> {
    await Promise.race([this.#stopping, ...others]);
    return this.#ask(question, ...others);
  }

  /** Returns the names of a further call that takes a sequence. */
  #call({ sequence }: SequenceOptions): Call {
    this.#checkOpen();
    return { id: `${this.#caller} ${++this.#calls}`, caller: this.#caller, sequence };
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new QSFError('bad_state', 'the model was closed');
  }

  /** Ends a call. Resolves with the result of a generation, also of one that has ended already. */
  #stop(id: string, shown?: number): Promise<GenerationResult | undefined> {
    const stopped = this.#ask((worker) => worker.stop(id, shown));
    this.#stopping = stopped.catch(() => {});
    return stopped;
  }
}

/** Returns the reply of a worker that got no message, such as an argument that no message can carry. */
const told = (error: unknown) => ({ ok: false, error: errorInfo(error) }) as const;

/** Returns a promise that rejects with the signal's reason when it aborts; `react` is called first. */
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
