// A conversation: its messages, and the answers that change them. The model's one sequence is shared by all of its
// conversations. An answer computes only the tokens after the part that the sequence already has, so keys and values
// follow the conversation that was answered last.
import type { AnswerPart, ChatResult, ChatStream } from '../answer-types.js';
import { promptOptions } from '../boundary.gen.js';
import type { ConversationData, ConversationOptions, TokenCount } from '../conversation-types.js';
import { QSFError, messageOf as sentenceOf } from '../errors.js';
import { streamOf } from './answer.js';
import type { Items, Outcome } from './answer.js';
import { guarded } from './guarded.js';
import { checkOption, kindOf } from './options.js';
import { messageOf, textOf } from './parts.js';
import type { QSF } from './qsf.js';
import { checkChatOptions, checkSignal, conversationRequest, messagesOf } from './requests.js';
import type { ChatMessage, ChatOptions } from '../types.js';

/** The version of toJSON()'s form. */
const VERSION = 1;
/** The part of the context that an answer has room in, at most, and that a removal of turns leaves free in addition. */
const ROOM = 1 / 4;
const SYSTEM: readonly string[] = ['system', 'developer'];

type Model = Pick<QSF, 'chat' | 'render' | 'tokenize' | 'stats'>;
type Messages = readonly ChatMessage[];

/** The state that an answer changes. */
interface State {
  readonly messages: Messages;
  /** Messages that were removed because the context was full. */
  readonly dropped: Messages;
}

/**
 * A conversation with a model. Its answers are streams as of chat(): an answer begins when it is first read. The
 * message that it answers is then in `messages`, and the answer itself after its end. An answer that is aborted or left
 * keeps the parts that were shown. If there were none, and after any error, the conversation is as it was before the
 * call.
 */
export class Conversation {
  readonly #model: Model;
  readonly #options: ConversationOptions;
  /** The options of each answer. */
  readonly #chat: ChatOptions;
  #state: State;
  #isAnswering = false;

  /** llm.conversation() calls it. Throws bad_argument. */
  constructor(model: Model, options: ConversationOptions = {}) {
    const { messages, chat } = conversationRequest(options);
    this.#model = model;
    this.#options = { ...options };
    this.#chat = chat;
    this.#state = { messages: frozen(messages), dropped: frozen([]) };
  }

  /**
   * Returns the conversation that toJSON() gave, as a value or as text. The options are those of llm.conversation().
   * Throws bad_argument for anything else, and for another version.
   */
  static from(
    model: Model,
    data: ConversationData | string,
    options: Omit<ConversationOptions, 'system' | 'messages'> = {},
  ): Conversation {
    const state = stateOf(data);
    const conversation = new Conversation(model, options);
    conversation.#state = state;
    return conversation;
  }

  /** The messages, frozen. Each change of the conversation makes a new list. */
  get messages(): readonly ChatMessage[] {
    return this.#state.messages;
  }

  /** The messages that were removed because the context was full, oldest first. */
  get dropped(): readonly ChatMessage[] {
    return this.#state.dropped;
  }

  /** Answers a further message: a text of the user, or any message, such as the result of a call (`role: 'tool'`). */
  send(message: string | ChatMessage, options: ChatOptions = {}): ChatStream {
    return this.#answer('send()', options, (messages) => [...messages, one(message)]);
  }

  /** Answers the last message anew. The last answer, if there is one, is replaced. */
  regenerate(options: ChatOptions = {}): ChatStream {
    return this.#answer('regenerate()', options, (messages) => {
      const last = messages.findLastIndex(({ role }) => role !== 'assistant');
      if (last >= 0 && !isSystem(messages[last]!)) return messages.slice(0, last + 1);
      throw new QSFError('bad_state', 'the conversation has no message that can be answered');
    });
  }

  /**
   * Goes back to message `i`, which is no answer, replaces its text or the whole message, and answers it. The messages
   * after it are removed.
   */
  edit(i: number, message: string | ChatMessage, options: ChatOptions = {}): ChatStream {
    return this.#answer('edit()', options, (messages) => {
      const at = index('i', i, messages.length - 1);
      const old = messages[at]!;
      if (isSystem(old) || old.role === 'assistant')
        throw new QSFError('bad_argument', `message ${at} has the role ${old.role}; it must be one to be answered`);
      return [...messages.slice(0, at), typeof message === 'string' ? { ...old, content: message } : one(message)];
    });
  }

  /**
   * Returns another conversation with the first `n` messages, by default with all of them, and the same options. An
   * answer under way is not in it.
   */
  fork(n: number = this.messages.length): Conversation {
    const { messages, dropped } = this.#state;
    const fork = new Conversation(this.#model, { ...this.#options, system: undefined, messages: undefined });
    fork.#state = { messages: frozen(messages.slice(0, index('n', n, messages.length))), dropped };
    return fork;
  }

  /**
   * Removes the last turn: the last message of the user and all messages after it. Returns them. Throws bad_state
   * during an answer.
   */
  undo(): readonly ChatMessage[] {
    this.#checkIdle();
    const { messages, dropped } = this.#state;
    const last = messages.findLastIndex(({ role }) => role === 'user');
    if (last < 0) return frozen([]);
    this.#state = { messages: frozen(messages.slice(0, last)), dropped };
    return frozen(messages.slice(last));
  }

  /**
   * Returns the tokens of the conversation, with a further message if one is given, and the tokens that the context
   * has left.
   * Rejects with context_full if they do not fit in the context.
   */
  async countTokens(next?: string | ChatMessage): Promise<TokenCount> {
    const { messages } = this.#state;
    return this.#count(next === undefined ? messages : [...messages, one(next)], this.#chat);
  }

  /** Returns the messages in the form that from() takes. JSON.stringify() calls it. */
  toJSON(): ConversationData {
    const { messages, dropped } = this.#state;
    return { version: VERSION, messages, ...(dropped.length > 0 && { dropped }) };
  }

  #answer(what: string, given: ChatOptions, change: (messages: Messages) => Messages): ChatStream {
    const begin = (outcome: Outcome<ChatResult>) => this.#items(what, given, change, outcome);
    const { stream, items } = streamOf(begin, textOf);
    return Object.assign(stream, { parts: items });
  }

  async *#items(
    what: string,
    given: ChatOptions,
    change: (messages: Messages) => Messages,
    outcome: Outcome<ChatResult>,
  ): Items<AnswerPart, ChatResult> {
    const shown: AnswerPart[] = [];
    /** The state to which a failure returns, once this answer has begun. */
    let before: State | undefined;
    let answer: ChatStream | undefined;
    let result: ChatResult | undefined;
    let error: unknown;
    try {
      const options = this.#optionsOf(what, given);
      this.#checkIdle();
      const messages = frozen(change(this.#state.messages));
      before = this.#state;
      this.#isAnswering = true;
      this.#state = { ...before, messages };
      if (this.#options.whenFull === 'drop') await this.#makeRoom(options);
      answer = this.#model.chat(this.#state.messages, options);
      for await (const part of answer.parts()) {
        shown.push(part);
        yield [part];
      }
      result = await answer.result;
      return result;
    } catch (thrown) {
      error = thrown;
      answer = undefined;
      throw thrown;
    } finally {
      // A loop that was left has ended the model's answer, which has a result unless it was aborted.
      if (answer && !result) result = await answer.result.catch((thrown: unknown) => void (error = thrown));
      if (before) this.#end(before, result, shown, given.signal?.aborted === true && error === given.signal.reason);
      if (result) outcome.resolve(result);
      else outcome.reject(error);
    }
  }

  /** Adds an answer after its end, or returns to the state before it. */
  #end(before: State, result: ChatResult | undefined, shown: readonly AnswerPart[], isAborted: boolean): void {
    this.#isAnswering = false;
    const isWhole = result !== undefined && result.end !== 'cancelled';
    const isKept = isWhole || (shown.length > 0 && (result !== undefined || isAborted));
    if (!isKept) {
      this.#state = before;
      return;
    }
    const { messages, dropped } = this.#state;
    this.#state = { messages: frozen([...messages, ...copies([result?.message ?? messageOf(shown)])]), dropped };
    const removed = dropped.slice(before.dropped.length);
    if (removed.length > 0) guarded(this.#options.onDrop ?? (() => {}))(frozen(removed));
  }

  /** Returns the options of one answer. Throws bad_argument. */
  #optionsOf(what: string, given: ChatOptions): ChatOptions {
    checkChatOptions(what, given);
    checkSignal(given.signal);
    const named = Object.entries(given).filter(([, value]) => value !== undefined);
    return { ...this.#chat, ...Object.fromEntries(named) };
  }

  /** Removes the oldest turns if the context has no room for an answer. Messages of the system stay. */
  async #makeRoom(options: ChatOptions): Promise<void> {
    const { messages, dropped } = this.#state;
    const bounds = [0, ...turnsOf(messages)];
    const quarter = Math.floor((await this.#model.stats()).plan.maxSeqLen * ROOM);
    const room = Math.min(options.maxTokens ?? promptOptions.maxTokens.fallback, quarter);
    const rest = (turns: number) => messages.filter((message, i) => i >= bounds[turns]! || isSystem(message));
    const fits = async (turns: number, least: number) => {
      options.signal?.throwIfAborted();
      const full = (error: unknown) => {
        if (error instanceof QSFError && error.code === 'context_full') return undefined;
        throw error;
      };
      const count = await this.#count(rest(turns), options).catch(full);
      return count !== undefined && count.left >= least;
    };
    if (bounds.length === 1 || (await fits(0, room))) return;
    // Every removal makes the model compute the rest anew, so it removes enough for several turns.
    let [few, many] = [1, bounds.length - 1];
    while (few < many) {
      const middle = (few + many) >> 1;
      if (await fits(middle, room + quarter)) many = middle;
      else few = middle + 1;
    }
    const removed = messages.filter((message, i) => i < bounds[few]! && !isSystem(message));
    this.#state = { messages: frozen(rest(few)), dropped: frozen([...dropped, ...removed]) };
  }

  async #count(messages: Messages, { template, templateArgs, tools }: ChatOptions): Promise<TokenCount> {
    const { maxSeqLen } = (await this.#model.stats()).plan;
    if (messages.length === 0) return { tokens: 0, left: maxSeqLen };
    const text = await this.#model.render(messages, { template, templateArgs, tools });
    const tokens = (await this.#model.tokenize(text)).length;
    return { tokens, left: Math.max(0, maxSeqLen - tokens) };
  }

  #checkIdle(): void {
    if (!this.#isAnswering) return;
    throw new QSFError(
      'bad_state',
      'this conversation is being answered: finish the answer, break out of its loop or abort it first',
    );
  }
}

const isSystem = ({ role }: ChatMessage) => SYSTEM.includes(role);

/** Returns the positions of messages of the user with earlier messages that can be removed. */
function turnsOf(messages: Messages): number[] {
  const first = messages.findIndex((message) => !isSystem(message));
  return messages.flatMap(({ role }, i) => (role === 'user' && i > first ? [i] : []));
}

/** Returns one message as templates get it. Throws bad_argument. */
function one(given: string | ChatMessage): ChatMessage {
  if (typeof given === 'string') return { role: 'user', content: given };
  if (typeof given === 'object' && given !== null && typeof given.role === 'string') return copies([given])[0]!;
  throw new QSFError('bad_argument', `the message is ${kindOf(given)}; it must be a text, or an object with a role`);
}

const copies = (messages: Messages): ChatMessage[] => messagesOf(messages);

/** Returns a whole number from 0 to `most`. Throws bad_argument. */
const index = (name: string, given: number, most: number): number =>
  checkOption(name, { type: 'u32', fallback: NaN, least: 0, most }, given);

/** Returns the state in saved data. Throws bad_argument. */
function stateOf(given: ConversationData | string): State {
  const data: unknown = typeof given === 'string' ? parsed(given) : given;
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw new QSFError('bad_argument', `the saved conversation is ${kindOf(data)}; it must be an object`);
  const { version, messages, dropped = [] } = data as Record<string, unknown>;
  if (version !== VERSION) {
    const what = typeof version === 'number' ? String(version) : kindOf(version);
    throw new QSFError('bad_argument', `the version of the saved conversation is ${what}; it must be ${VERSION}`);
  }
  const list = (name: string, value: unknown) => {
    if (!Array.isArray(value))
      throw new QSFError('bad_argument', `${name} of the saved conversation is ${kindOf(value)}; it must be a list`);
    return frozen(value.length === 0 ? [] : copies(value as Messages));
  };
  return { messages: list('messages', messages), dropped: list('dropped', dropped) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new QSFError('bad_argument', `the saved conversation is not JSON: ${sentenceOf(error)}`);
  }
}

/** Freezes the value and its members, however deep, and returns it. */
function frozen<T>(value: T): T {
  const left: unknown[] = [value];
  for (const one of left) {
    if (typeof one !== 'object' || one === null || Object.isFrozen(one)) continue;
    for (const member of Object.values(one) as unknown[]) left.push(member);
    Object.freeze(one);
  }
  return value;
}
