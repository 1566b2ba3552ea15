// The entry `qsf/prompt-api`: a `LanguageModel` of the Prompt API that a model in the page answers.
import {
  asDomException,
  formatOf,
  isText,
  messagesOf,
  quotaExceeded,
  samplingOf,
} from './adapters/prompt-api-input.js';
import type {
  AppendOptions,
  Availability,
  CoreOptions,
  CreateMonitor,
  CreateOptions,
  PromptInput,
  PromptOptions,
  Tool,
} from './adapters/prompt-api-types.js';
import { checkModel } from './adapters/checks.js';
import { following, inTurn, orAborted, streamInTurn } from './adapters/turns.js';
import type { AssistantMessage, ChatResult } from './answer-types.js';
import { samplerOptions } from './boundary.gen.js';
import type { QSF } from './page/qsf.js';
import type { Progress } from './progress-types.js';
import type { ChatMessage, ChatOptions } from './types.js';

export type { AppendOptions, CoreOptions, CreateMonitor, CreateOptions, PromptInput, PromptOptions, Tool };

/** The calls of a model that a session makes. */
export type PromptedModel = Pick<QSF, 'chat' | 'render' | 'tokenize' | 'stats'>;

const CALLS = ['chat', 'render', 'tokenize', 'stats'] satisfies (keyof PromptedModel)[];

/** An open model, or a function that opens one when the first session is created. */
export type PromptSource = PromptedModel | ((onProgress: (progress: Progress) => void) => Promise<PromptedModel>);

/** Rounds of calls in one answer, so that a model which only calls tools ends. */
const MOST_ROUNDS = 16;

/** The state of a session, which a clone takes over. */
interface State {
  readonly llm: PromptedModel;
  readonly contextWindow: number;
  readonly sampling: ChatOptions;
  readonly tools: readonly Tool[];
  /** The first messages, which are never removed. */
  readonly initial: readonly ChatMessage[];
  /** The messages after them. */
  history: ChatMessage[];
  usage: number;
}

/** A session of the Prompt API: a conversation with its own history. Sessions of one model take turns. */
export class LanguageModelSession extends EventTarget {
  oncontextoverflow: ((event: Event) => unknown) | null = null;
  /** The same by its former name. */
  onquotaoverflow: ((event: Event) => unknown) | null = null;
  readonly #state: State;
  readonly #destroyed = new AbortController();

  /** Made by create() and clone(). */
  constructor(state: State, signal: AbortSignal | undefined) {
    super();
    this.#state = state;
    signal?.addEventListener('abort', () => this.#destroyed.abort(signal.reason), { once: true });
  }

  /** Tokens of the conversation so far. */
  get contextUsage(): number {
    return this.#state.usage;
  }
  get inputUsage(): number {
    return this.#state.usage;
  }
  /** Tokens that a conversation may have, with the answer. */
  get contextWindow(): number {
    return this.#state.contextWindow;
  }
  get inputQuota(): number {
    return this.#state.contextWindow;
  }
  get topK(): number {
    return this.#state.sampling.topK ?? samplerOptions.topK.fallback;
  }
  get temperature(): number {
    return this.#state.sampling.temperature ?? samplerOptions.temperature.fallback;
  }

  /** Returns the answer, which becomes a part of the conversation with its input. Runs the tools that it calls. */
  async prompt(input: PromptInput, options: PromptOptions = {}): Promise<string> {
    let text = '';
    for await (const piece of itemsOf(await this.#answer(input, options))) text += piece;
    return text;
  }

  /** Returns the answer in pieces. Cancelling the stream ends the computation, and the conversation stays as it was. */
  promptStreaming(input: PromptInput, options: PromptOptions = {}): ReadableStream<string> {
    const abort = following(given(options).signal);
    let items: AsyncGenerator<string> | undefined;
    return new ReadableStream({
      pull: async (controller) => {
        items ??= itemsOf(await this.#answer(input, { ...options, signal: abort.signal }));
        const { done, value } = await items.next();
        if (!done) return controller.enqueue(value);
        controller.close();
        abort.end();
      },
      cancel: (reason) => {
        abort.abort(reason);
        abort.end();
      },
    });
  }

  /** Adds messages to the conversation without an answer. */
  async append(input: PromptInput, options: AppendOptions = {}): Promise<undefined> {
    const messages = messagesOf(input, false);
    await this.#while(given(options), (signal) =>
      inTurn(this, signal, async () => {
        await this.#makeRoom(messages, signal);
        const usage = await this.#count([...this.#messages(), ...messages]);
        signal.throwIfAborted();
        this.#state.history.push(...messages);
        this.#state.usage = usage;
      }).catch(rethrown),
    );
  }

  /** Returns the tokens that an input would add to the conversation. */
  async measureContextUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    const messages = messagesOf(input, false);
    const count = await this.#while(given(options), (signal) => {
      signal.throwIfAborted();
      return orAborted(this.#count([...this.#messages(), ...messages]), signal).catch(rethrown);
    });
    return Math.max(0, count - this.#state.usage);
  }

  /** measureContextUsage() by its former name. */
  measureInputUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    return this.measureContextUsage(input, options);
  }

  /** Returns a session that goes on from the same conversation. */
  async clone(options: AppendOptions = {}): Promise<LanguageModelSession> {
    const copy = async () =>
      new LanguageModelSession({ ...this.#state, history: [...this.#state.history] }, given(options).signal);
    return this.#while(given(options), (signal) => inTurn(this, signal, copy));
  }

  /** Ends the session's computations with an AbortError, and refuses others. The model stays open. */
  destroy(): undefined {
    this.#destroyed.abort(new DOMException('The session was destroyed.', 'AbortError'));
  }

  /** Runs work until the session is destroyed or the call's signal aborts. */
  async #while<T>(options: AppendOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal, end } = following(this.#destroyed.signal, options.signal);
    try {
      return await work(signal);
    } finally {
      end();
    }
  }

  #messages(): ChatMessage[] {
    return [...this.#state.initial, ...this.#state.history];
  }

  async #answer(input: PromptInput, options: PromptOptions): Promise<ReadableStream<string>> {
    const messages = messagesOf(input, false);
    const responseFormat = formatOf(given(options));
    const signals = [this.#destroyed.signal, given(options).signal];
    try {
      return await streamInTurn(this, signals, 1, (own) => this.#rounds(messages, responseFormat, own));
    } catch (error) {
      const aborted = signals.find((signal) => signal?.aborted);
      throw aborted ? aborted.reason : asDomException(error);
    }
  }

  /** Yields the text of an answer, and runs tools until an answer has no calls. */
  async *#rounds(
    input: ChatMessage[],
    responseFormat: ChatOptions['responseFormat'],
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { llm, sampling, tools } = this.#state;
    const chat = { ...sampling, ...this.#described(), responseFormat };
    const added = [...input];
    let usage = 0;
    try {
      for (let round = 0; round < MOST_ROUNDS; round++) {
        await this.#makeRoom(added, signal);
        const given = [...this.#messages(), ...added];
        const pieces = await streamInTurn<string | ChatResult>(llm, signal, 1, async function* (own) {
          const answer = llm.chat(given, { ...chat, signal: own });
          yield* answer;
          yield answer.result;
        });
        for await (const piece of itemsOf(pieces)) {
          if (typeof piece === 'string') {
            yield piece;
            continue;
          }
          added.push(piece.message);
          usage = piece.position;
        }
        const calls = (added.at(-1) as AssistantMessage).tool_calls ?? [];
        if (calls.length === 0) break;
        for (const { id, function: call } of calls) {
          const tool = tools.find(({ name }) => name === call.name);
          const execute = tool?.execute as ((values: object) => Promise<string>) | undefined;
          const content = execute
            ? await orAborted(Promise.resolve(execute(call.arguments)), signal)
            : `There is no tool ${call.name}.`;
          added.push({ role: 'tool', tool_call_id: id, name: call.name, content });
        }
      }
    } catch (error) {
      throw asDomException(error);
    }
    signal.throwIfAborted();
    this.#state.history.push(...added);
    this.#state.usage = usage;
  }

  /** Returns the tools in the form of templates, if there are any. */
  #described(): { tools?: object[] } {
    const tools = this.#state.tools.map(({ name, description, inputSchema: parameters }) => ({
      ...{ type: 'function', function: { name, description, parameters } },
    }));
    return tools.length > 0 ? { tools } : {};
  }

  /** Returns the tokens of a conversation. */
  async #count(messages: readonly ChatMessage[]): Promise<number> {
    const { llm } = this.#state;
    if (messages.length === 0) return 0;
    // No template answers an answer, so the next message is counted with one at the end.
    const asked = messages.at(-1)!.role === 'assistant' ? [...messages, { role: 'user', content: '' }] : messages;
    return (await llm.tokenize(await llm.render(asked, this.#described()))).length;
  }

  /** Removes the oldest messages until the next ones have room. Throws QuotaExceededError if they have none alone. */
  async #makeRoom(next: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
    const { contextWindow, history } = this.#state;
    let removed = false;
    for (;;) {
      signal.throwIfAborted();
      const size = await this.#count([...this.#messages(), ...next]);
      if (size < contextWindow) break;
      if (history.length === 0) throw quotaExceeded(size, contextWindow);
      // A question goes with everything that answers it.
      do history.shift();
      while (history.length > 0 && history[0]!.role !== 'user');
      removed = true;
    }
    if (!removed) return;
    for (const name of ['contextoverflow', 'quotaoverflow'] as const) {
      const event = new Event(name);
      this.dispatchEvent(event);
      this[`on${name}`]?.(event);
    }
  }
}

/** Yields the items of a stream. Not every browser has streams with loops of their own. */
async function* itemsOf<T>(stream: ReadableStream<T>): AsyncGenerator<T, undefined, undefined> {
  const reader = stream.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => {});
  }
}

/** Throws the Prompt API's form of an error. */
const rethrown = (error: unknown): never => {
  throw asDomException(error);
};

/** Returns the options of a call: null is none, as in a browser. */
const given = <T extends object>(options: T | null | undefined): T => options ?? ({} as T);

/** The progress of a download for the `monitor` of create(). */
class Monitor extends EventTarget implements CreateMonitor {
  ondownloadprogress: CreateMonitor['ondownloadprogress'] = null;

  /** Reports a share of the download, from 0 to 1. */
  report(loaded: number): void {
    const values = { lengthComputable: true, loaded, total: 1 };
    const event =
      typeof ProgressEvent === 'function'
        ? new ProgressEvent('downloadprogress', values)
        : (Object.assign(new Event('downloadprogress'), values) as unknown as ProgressEvent);
    this.dispatchEvent(event);
    this.ondownloadprogress?.(event);
  }
}

/** The members of `LanguageModel` itself. */
export interface LanguageModelFactory {
  /**
   * Returns a session. Rejects with NotSupportedError for anything but texts, with RangeError or TypeError for options
   * that are none, and with QuotaExceededError if the initial prompts are longer than the context.
   */
  create(options?: CreateOptions): Promise<LanguageModelSession>;
  availability(options?: CoreOptions): Promise<Availability>;
  params(): Promise<{ defaultTopK: number; maxTopK: number; defaultTemperature: number; maxTemperature: number }>;
}

/**
 * Returns an object like the Prompt API's `LanguageModel`, whose sessions a model answers. A function opens the model
 * when the first session is created, and all sessions share it. Errors are DOMExceptions as that API has them.
 */
export function promptApi(source: PromptSource): LanguageModelFactory {
  if (typeof source !== 'function') checkModel('promptApi()', source, CALLS, ', or a function');
  const { topK, temperature } = samplerOptions;
  const monitors = new Set<Monitor>();
  let opening: Promise<PromptedModel> | undefined;
  let isOpen = typeof source !== 'function';

  const opened = (): Promise<PromptedModel> => {
    if (typeof source !== 'function') return Promise.resolve(source);
    const report = ({ loaded, total }: Progress) => {
      if (total > 0 && loaded < total) for (const monitor of monitors) monitor.report(loaded / total);
    };
    opening ??= source(report).then(
      (llm) => {
        isOpen = true;
        return llm;
      },
      (error: unknown) => {
        opening = undefined; // the next session tries again
        throw error;
      },
    );
    return opening;
  };

  return {
    async create(asked) {
      const options = given(asked);
      const { signal, monitor: watch, tools = [], initialPrompts = [] } = options;
      signal?.throwIfAborted();
      if (!isText(options)) throw new DOMException('Only texts are supported.', 'NotSupportedError');
      const sampling = samplingOf(options);
      const initial = messagesOf(initialPrompts, true);
      const monitor = new Monitor();
      watch?.(monitor);
      monitors.add(monitor);
      try {
        monitor.report(0);
        const llm = await orAborted(opened(), signal);
        monitor.report(1);
        const contextWindow = (await orAborted(llm.stats(), signal)).plan.maxSeqLen;
        const state: State = { llm, contextWindow, sampling, tools, initial, history: [], usage: 0 };
        const session = new LanguageModelSession(state, signal);
        state.usage = await session.measureContextUsage([]);
        if (state.usage >= contextWindow) throw quotaExceeded(state.usage, contextWindow);
        return session;
      } catch (error) {
        throw asDomException(error);
      } finally {
        monitors.delete(monitor);
      }
    },
    async availability(options) {
      if (!isText(given(options))) return 'unavailable';
      if (isOpen) return 'available';
      return opening ? 'downloading' : 'downloadable';
    },
    async params() {
      return {
        ...{ defaultTopK: topK.fallback, maxTopK: topK.most },
        ...{ defaultTemperature: temperature.fallback, maxTemperature: temperature.most },
      };
    },
  };
}
