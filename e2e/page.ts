// What the test page can be told to do. Everything goes in and out as JSON, so that any driver can carry it.
import { QSF, QSFError } from '../web/src/index.js';
import type {
  CacheEntry,
  CacheUsage,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatMessage,
  ChatOptions,
  ConversationOptions,
  GenerateOptions,
  LoadOptions,
  Progress,
  PruneOptions,
  Restored,
  SaveOptions,
  SavedEntry,
  Stats,
} from '../web/src/index.js';

export interface Failure {
  name: string;
  code: string | undefined;
  message: string;
}

export interface Generated {
  text: string;
  stats: Stats;
}

type Options<T> = Omit<T, 'signal' | 'onProgress' | 'onWarning'>;

const open = new Map<string, QSF>();

function model(name: string): QSF {
  const llm = open.get(name);
  if (!llm) throw new Error(`no model is open as ${name}`);
  return llm;
}

async function generate(llm: QSF, prompt: string | number[], options: GenerateOptions): Promise<Generated> {
  let text = '';
  for await (const piece of llm.generate(prompt, options)) text += piece;
  return { text, stats: await llm.stats() };
}

/** An abort, and whether what it was to end had ended by the page's next task. */
class Abort {
  readonly #controller = new AbortController();
  #atOnce = false;
  #settled = false;
  readonly #looked = new Promise<void>((resolve) => {
    this.#controller.signal.addEventListener('abort', () => {
      setTimeout(() => {
        this.#atOnce = this.#settled;
        resolve();
      }, 0);
    });
  });

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  after(ms: number): void {
    setTimeout(() => this.#controller.abort(), ms);
  }

  async watch(work: Promise<unknown>): Promise<{ atOnce: boolean; reason: ReturnType<typeof failure> }> {
    try {
      await work;
    } catch (error) {
      this.#settled = true;
      await this.#looked;
      return { atOnce: this.#atOnce, reason: failure(error) };
    }
    throw new Error('nothing was aborted');
  }
}

const actions = {
  async load(
    name: string,
    url: string,
    options: Options<LoadOptions>,
  ): Promise<{ stats: Stats; progress: Progress[]; warnings: string[] }> {
    const progress: Progress[] = [];
    const warnings: string[] = [];
    const onWarning = (warning: string) => void warnings.push(warning);
    const llm = await QSF.load(url, { ...options, onProgress: (p) => progress.push(p), onWarning });
    open.set(name, llm);
    return { stats: await llm.stats(), progress, warnings };
  },

  async loadFile(name: string, url: string, options: Options<LoadOptions>): Promise<Stats> {
    const file = new File([await (await fetch(url)).blob()], url.split('/').at(-1)!);
    const llm = await QSF.load(file, options);
    open.set(name, llm);
    return llm.stats();
  },

  generate: (name: string, prompt: string | number[], options: Options<GenerateOptions>): Promise<Generated> =>
    generate(model(name), prompt, options),

  /** The text of a conversation, its answer, and the tokens of its prompt that were computed. */
  async chat(name: string, messages: ChatMessage[], options: Options<ChatOptions>) {
    const { template, templateArgs } = options;
    const rendered = await model(name).render(messages, { template, templateArgs });
    const stream = model(name).chat(messages, options);
    let text = '';
    for await (const piece of stream) text += piece;
    return { rendered, text, ...(await stream.result) };
  },

  /** Sends texts in a conversation that begins with `messages`. Gives its messages, and each answer's tokens and logits. */
  async converse(name: string, messages: ChatMessage[], texts: string[], options: Options<ConversationOptions>) {
    const conversation = model(name).conversation({ ...options, messages });
    const answers = [];
    for (const text of texts) {
      const { tokens, logitsHash, promptTokens, reusedTokens } = await conversation.send(text).result;
      answers.push({ tokens, logitsHash, computed: promptTokens - reusedTokens });
    }
    return { messages: [...conversation.messages], answers };
  },

  /** The same answer whole and in chunks of OpenAI's shape, and by await. */
  async complete(name: string, params: ChatCompletionCreateParams, options: Options<ChatOptions>) {
    const llm = model(name);
    const whole = await llm.chat.completions.create({ ...params, stream: false });
    const chunks: ChatCompletionChunk[] = [];
    const how = { ...params, stream: true, stream_options: { include_usage: true } } as const;
    for await (const chunk of await llm.chat.completions.create(how)) chunks.push(chunk);
    return { whole, chunks, awaited: await llm.chat(params.messages as ChatMessage[], options) };
  },

  /** Aborts once so many pieces have come; what is counted before and after tells whether the worker stopped. */
  async abortGeneration(name: string, prompt: string, options: Options<GenerateOptions>, pieces: number) {
    const llm = model(name);
    const abort = new Abort();
    let came = 0;
    const consume = async () => {
      for await (const piece of llm.generate(prompt, { ...options, signal: abort.signal })) {
        came += piece ? 1 : 0;
        if (came === pieces) abort.after(0);
      }
    };
    const aborted = await abort.watch(consume());
    const before = (await llm.stats()).generation?.tokens.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
    const { generation } = await llm.stats();
    return { ...aborted, before, after: generation?.tokens.length, end: generation?.end };
  },

  /** Aborts a long generation at its first piece, and begins another in the same tick, of which it tells. */
  async abortAndGenerate(name: string, prompt: string, options: Options<GenerateOptions>) {
    const llm = model(name);
    const controller = new AbortController();
    const first = { ...options, maxTokens: 400, ignoreEos: true, signal: controller.signal };
    let second: Promise<Generated> | undefined;
    const consume = async () => {
      for await (const piece of llm.generate(prompt, first)) {
        if (!piece || second) continue;
        controller.abort();
        second = generate(llm, prompt, options);
      }
    };
    const reason = await consume().then(() => undefined, failure);
    return { reason, second: await second };
  },

  /** Generates after several prompts at once. */
  together: (name: string, prompts: string[], options: Options<GenerateOptions>) =>
    Promise.all(
      prompts.map(async (prompt) => {
        const stream = model(name).generate(prompt, options);
        const { tokens, logitsHash, sequence } = await stream.result;
        return { text: await stream.text(), tokens, logitsHash, sequence };
      }),
    ),

  /** Aborts a generation that waits for the network, after so many milliseconds. */
  async abortWaiting(name: string, prompt: string, options: Options<GenerateOptions>, after: number) {
    const llm = model(name);
    const abort = new Abort();
    abort.after(after);
    const aborted = await abort.watch(generate(llm, prompt, { ...options, signal: abort.signal }));
    return { ...aborted, stats: await llm.stats() };
  },

  async abortLoad(url: string, options: Options<LoadOptions>, after: number) {
    const abort = new Abort();
    abort.after(after);
    return abort.watch(QSF.load(url, { ...options, signal: abort.signal }));
  },

  /** Leaves the loop after so many pieces. */
  async breakGeneration(name: string, prompt: string, options: Options<GenerateOptions>, pieces: number) {
    const made: string[] = [];
    for await (const piece of model(name).generate(prompt, options)) if (made.push(piece) === pieces) break;
    const { end, tokens = [] } = (await model(name).stats()).generation ?? {};
    return { text: made.join(''), end, tokens };
  },

  /** A consumer that takes its time over each piece; tells how far the worker ran ahead at most. */
  async slowly(name: string, prompt: string, options: Options<GenerateOptions>, pause: number) {
    const llm = model(name);
    let text = '';
    let came = 0;
    let ahead = 0;
    for await (const piece of llm.generate(prompt, options)) {
      text += piece;
      came++;
      await new Promise((resolve) => setTimeout(resolve, pause));
      ahead = Math.max(ahead, ((await llm.stats()).generation?.tokens.length ?? 0) - came);
    }
    return { text, ahead };
  },

  /** Begins a load that nobody waits for. */
  async beginLoad(url: string, options: Options<LoadOptions>): Promise<void> {
    void QSF.load(url, options).catch(() => undefined);
  },

  /** Runs a program that was built for pages; tells how it ended and what it wrote. */
  async runProgram(url: string, args: string[]): Promise<{ status: number; lines: string[] }> {
    const { default: create } = (await import(url)) as { default: (module: object) => Promise<unknown> };
    const lines: string[] = [];
    const print = (line: string) => void lines.push(line);
    const status = await new Promise<number>((resolve, reject) => {
      create({ arguments: args, print, printErr: print, onExit: resolve }).catch(reject);
    });
    return { status, lines };
  },

  stats: (name: string): Promise<Stats> => model(name).stats(),
  /** Gives the file in base64. */
  async save(name: string, options: SaveOptions): Promise<string> {
    const bytes = new Uint8Array(await (await model(name).save(options)).arrayBuffer());
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
  },
  restore: (name: string, from: string): Promise<Restored> => model(name).restore(from),
  /** Restores what save() gave. */
  restoreFile: async (name: string, base64: string): Promise<Restored> =>
    model(name).restore(new Blob([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))])),
  savedList: (): Promise<SavedEntry[]> => QSF.saved.list(),
  savedRemove: (name: string): Promise<void> => QSF.saved.remove(name),

  tokenize: (name: string, text: string): Promise<number[]> => model(name).tokenize(text),
  detokenize: (name: string, tokens: number[]): Promise<string> => model(name).detokenize(tokens),
  cacheState: (url: string): Promise<CacheEntry> => QSF.cache.state(url),
  cacheList: (): Promise<CacheEntry[]> => QSF.cache.list(),
  cacheUsage: (): Promise<CacheUsage> => QSF.cache.usage(),
  cachePrune: (limits: PruneOptions): Promise<string[]> => QSF.cache.prune(limits),
  /** Opens a model that nobody holds afterwards. */
  async abandon(url: string, options: Options<LoadOptions>): Promise<void> {
    await QSF.load(url, options);
  },
  cacheRemove: (url: string): Promise<void> => QSF.cache.remove(url),
  async close(name: string): Promise<void> {
    await model(name).close();
    open.delete(name);
  },
  async host() {
    return { isolated: crossOriginIsolated, processors: navigator.hardwareConcurrency };
  },
};

export type Actions = typeof actions;

function failure(error: unknown): Failure {
  const code = error instanceof QSFError ? error.code : undefined;
  return error instanceof Error || error instanceof DOMException
    ? { name: error.name, code, message: error.message }
    : { name: typeof error, code, message: String(error) };
}

async function call(action: keyof Actions, args: unknown[]): Promise<{ value: unknown } | { failure: Failure }> {
  try {
    const value = await (actions[action] as (...args: unknown[]) => Promise<unknown>)(...args);
    return { value: value ?? null };
  } catch (error) {
    return { failure: failure(error) };
  }
}

declare global {
  interface Window {
    call: typeof call;
  }
}
window.call = call;
