// The mode of models with a chat template: a conversation that is kept in the browser.

import { Conversation } from 'qsf';
import type { ChatMessage, ChatStream, ConversationData, End, QSF, Stats } from 'qsf';
import { keepChat, newId, removeChat, textOf, timeOfChat, titleOfChat } from './chats.js';
import type { SavedChat } from './chats.js';
import { converse } from './converse.js';
import { byId, isOff, make, setOff } from './dom.js';
import * as format from './format.js';
import { setUpHistory } from './history.js';
import { AnswerView, copy, smallButton, userMessage } from './message.js';
import { showNotice } from './notice.js';
import type { OptionFields } from './options.js';
import { noteRate } from './rate.js';
import { showingWork, unlessAborted } from './stage.js';
import type { Stage } from './stage.js';
import { tools } from './tools.js';

const IDEAS = ['Explain tides to a child.', 'Write a haiku about rain.', 'Give me three names for a bakery.'];

/** Pixels by which the end may be out of view and still counts as seen. */
const NEAR = 60;

/** Reasons for the end of an answer that its reader needs. */
const ENDS: Partial<Record<End, string>> = {
  length: 'at the length limit',
  context: 'the context is full',
  cancelled: 'stopped',
};

const composer = byId('composer', HTMLFormElement);
const field = byId('message', HTMLTextAreaElement);
const send = byId('send', HTMLButtonElement);
const note = byId('chat-note', HTMLElement);
const transcript = byId('transcript', HTMLElement);
const heading = byId('chat-title', HTMLElement);

export class ChatMode {
  readonly #stage: Stage;
  readonly #options: OptionFields;
  readonly #system = make('textarea', { id: 'system', rows: '2' });
  readonly #tools = make('input', { type: 'checkbox', id: 'tools' });
  #llm!: QSF;
  #model = '';
  #conversation!: Conversation;
  #id = newId();
  /** The time of the kept conversation's last change, as this page knows it. */
  #time = 0;
  #isWriting = false;
  /** Settles when the answer under way has ended. */
  #answering: Promise<void> = Promise.resolve();
  /** The last answer on the page. */
  #last: AnswerView | undefined;

  constructor(stage: Stage, options: OptionFields) {
    this.#stage = stage;
    this.#options = options;
    const system = make(
      'div',
      { class: 'field wide' },
      make('label', { for: 'system' }, 'System message'),
      this.#system,
    );
    const check = make(
      'label',
      { class: 'check' },
      this.#tools,
      ' Tools: a clock, a calculator, a search of your files',
    );
    byId('fields', HTMLElement).before(make('div', { class: 'options chat-only' }, system, check));
    this.#setUpComposer();
    transcript.addEventListener('click', ({ target }) => {
      if (!(target instanceof HTMLElement) || !target.classList.contains('copy')) return;
      void copy(target.closest('.code')?.querySelector('pre')?.textContent ?? '', target);
    });
    byId('chat-new', HTMLButtonElement).addEventListener('click', () => this.#begin());
    setUpHistory({
      open: (chat) => this.#openChat(chat),
      removed: (id) => {
        if (id === this.#id) this.#begin();
      },
      current: () => this.#id,
    });
  }

  /** Takes a model that was opened. The conversation goes on with it. */
  open(llm: QSF, model: string): void {
    this.#llm = llm;
    this.#model = model;
    this.#take((this.#conversation as Conversation | undefined)?.toJSON() ?? { version: 1, messages: [] });
    this.#draw();
  }

  update(refused: boolean, writing: boolean): void {
    this.#isWriting = writing;
    send.textContent = writing ? 'Stop' : 'Send';
    setOff(send, refused && !writing);
    for (const button of transcript.querySelectorAll<HTMLButtonElement>('.message-actions button:not(.copies)'))
      button.hidden = writing;
  }

  #setUpComposer(): void {
    const grow = () => {
      field.style.height = 'auto';
      field.style.height = `${field.scrollHeight + 2}px`;
    };
    field.addEventListener('input', grow);
    // A long message and a note take room from the text above them.
    new ResizeObserver(follow).observe(transcript);
    const isTouched = matchMedia('(pointer: coarse)');
    field.addEventListener('keydown', (event) => {
      const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.isComposing;
      if (event.key !== 'Enter' || !isPlain || isTouched.matches) return;
      event.preventDefault();
      if (!this.#isWriting) composer.requestSubmit();
    });
    composer.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (this.#isWriting) this.#stage.stop();
      else if (text === '') field.focus();
      else if (!isOff(send)) {
        field.value = '';
        grow();
        void this.#send(text);
      }
    });
  }

  #send(text: string): Promise<void> {
    return this.#answer(
      text,
      () => this.#conversation.messages.length,
      (how) => this.#conversation.send(text, how),
    );
  }

  /** Answers message `i` anew, with another text if one is given. */
  #again(i: number, text: string): Promise<void> {
    return this.#answer(
      text,
      () => i,
      (how) => this.#conversation.edit(i, text, how),
    );
  }

  /** Shows a message of the user in the place of message `at` and all later ones, and its answer. */
  #answer(text: string, at: () => number, begin: (how: AnswerHow) => ChatStream): Promise<void> {
    const opening = this.#stage.model();
    const again = () => this.#answer(text, at, begin);
    return (this.#answering = this.#stage.write('chat', again, async (signal) => {
      const waiting = userMessage(text, undefined);
      const view = new AnswerView(this.#model, follow);
      this.#endLast();
      this.#showUntil(at());
      transcript.append(waiting, view.element);
      transcript.setAttribute('aria-busy', 'true');
      toEnd();
      note.textContent = 'Opening the model …';
      let before = this.#conversation.messages;
      let words = '';
      try {
        const llm = await unlessAborted(opening, signal);
        if (llm === undefined) return;
        before = this.#take(this.#data()).messages;
        note.textContent = 'Reading …';
        words = await this.#read(llm, view, begin, signal);
      } finally {
        note.textContent = '';
        transcript.setAttribute('aria-busy', 'false');
        this.#keep();
        if (this.#conversation.messages !== before && this.#conversation.dropped.length === 0) {
          const i = this.#conversation.messages.findLastIndex(({ role }) => role === 'user');
          waiting.replaceWith(this.#userView(i, text));
          this.#endAnswer(view, i, words);
        } else {
          if (this.#conversation.messages === before && field.value === '') field.value = text;
          this.#draw();
        }
      }
    }));
  }

  /** Takes the buttons from the last answer that are for the last one only. */
  #endLast(): void {
    this.#last?.endLast();
  }

  /** Reads an answer to its end. Returns a line about it. */
  async #read(llm: QSF, view: AnswerView, begin: (how: AnswerHow) => ChatStream, signal: AbortSignal): Promise<string> {
    const how: AnswerHow = {
      ...{ ...this.#options.read(), signal },
      onPromptProgress: ({ done, total }) => {
        note.textContent = done < total ? `Reading ${done} of ${total} tokens …` : '';
      },
    };
    const stats = await showingWork(llm, signal, async () => {
      await converse(begin(how), {
        signal,
        part: (part) => {
          note.textContent = '';
          if (part.type === 'call') view.addCall(part.id, part.name, part.arguments);
          else view.add(part.type, part.text);
        },
        called: (id, value) => view.setResult(id, value),
        extend: (messages) => {
          const data = this.#data();
          return this.#take({ ...data, messages: [...data.messages, ...messages] });
        },
        send: (conversation, message) => conversation.send(message, how),
      });
    });
    noteRate(stats);
    return inWords(stats);
  }

  /** Ends an answer to message `i` with its buttons. A message that was dropped has a negative index. */
  #endAnswer(view: AnswerView, i: number, words: string): void {
    const copies = smallButton('Copy', () => void copy(view.text, copies));
    copies.classList.add('copies');
    const others = i < 0 ? [] : [smallButton('Branch', () => void this.#branch(i)), this.#retryButton(i)];
    view.end(words, copies, ...others);
    this.#last = view;
  }

  #retryButton(i: number): HTMLElement {
    const button = smallButton('Retry', () => void this.#again(i, textOf(this.#conversation.messages[i]!)));
    button.classList.add('last-only');
    return button;
  }

  /** Goes on with a copy of the conversation that ends with the answer to message `i`. */
  async #branch(i: number): Promise<void> {
    const { messages } = this.#conversation;
    const next = messages.findIndex(({ role }, at) => at > i && role === 'user');
    await this.#change(newId(), this.#conversation.fork(next < 0 ? messages.length : next).toJSON());
    this.#keep();
  }

  #userView(i: number, text: string): HTMLElement {
    const box = userMessage(text, i < 0 ? undefined : (now) => void this.#again(i, now));
    box.dataset['message'] = String(i);
    return box;
  }

  /** Removes the views of message `i` and of all later ones. */
  #showUntil(i: number): void {
    const first = [...transcript.children].find((view) => Number((view as HTMLElement).dataset['message'] ?? -1) >= i);
    if (first) while (first.nextSibling) first.nextSibling.remove();
    first?.remove();
    transcript.querySelector('.welcome')?.remove();
  }

  /** Draws the whole conversation. */
  #draw(): void {
    const { messages, dropped } = this.#conversation;
    this.#last = undefined;
    transcript.replaceChildren();
    heading.textContent = titleOfChat(this.#data()) || 'A new conversation';
    if (messages.every(({ role }) => role === 'system')) transcript.append(this.#welcome());
    let views: AnswerView[] = [];
    let user = -1;
    const all = [...dropped, ...messages];
    const end = () => {
      for (const view of views) this.#endAnswer(view, user, '');
      views = [];
    };
    for (const [at, message] of all.entries()) {
      const i = at - dropped.length;
      if (at === dropped.length && at > 0) {
        end();
        transcript.append(make('p', { class: 'small divide' }, 'The context has no room for the messages above.'));
      }
      if (message.role === 'user') {
        end();
        this.#endLast();
        user = i;
        transcript.append(this.#userView(i, textOf(message)));
      } else if (message.role === 'assistant') {
        if (views.length === 0) views.push(new AnswerView(this.#model, () => undefined));
        transcript.append(views[0]!.element);
        addMessage(views[0]!, message);
      } else if (message.role === 'tool') {
        views[0]?.setResult(String(message['tool_call_id']), textOf(message));
      }
    }
    end();
    toEnd();
  }

  #welcome(): HTMLElement {
    const chips = IDEAS.map((idea) => {
      const chip = make('button', { type: 'button' }, idea);
      chip.addEventListener('click', () => void this.#send(idea));
      return chip;
    });
    return make(
      'div',
      { class: 'welcome' },
      make('p', { class: 'welcome-title' }, `Chat with ${this.#model}`),
      make('p', { class: 'small' }, 'It answers in this tab. Nothing you write leaves it.'),
      make('div', { class: 'chips', role: 'group', 'aria-label': 'Ideas' }, ...chips),
    );
  }

  #data(): ConversationData {
    return this.#conversation.toJSON();
  }

  /** Makes a conversation of `data` with the open model and the options. */
  #take(data: ConversationData): Conversation {
    const content = this.#system.value.trim();
    const rest = data.messages.filter(({ role }) => role !== 'system');
    const messages: ChatMessage[] = [...(content === '' ? [] : [{ role: 'system', content }]), ...rest];
    this.#conversation = Conversation.from(
      this.#llm,
      { ...data, messages },
      {
        whenFull: 'drop',
        ...(this.#tools.checked && { tools: tools.map(({ definition }) => definition) }),
      },
    );
    return this.#conversation;
  }

  /** Shows another conversation, after the answer under way has ended. */
  async #change(id: string, data: ConversationData, time = 0): Promise<void> {
    if (this.#isWriting) this.#stage.stop();
    await this.#answering;
    this.#id = id;
    this.#time = time;
    this.#take(data);
    this.#draw();
    field.focus();
  }

  #begin(): void {
    void this.#change(newId(), { version: 1, messages: [] });
  }

  #openChat({ id, data, time }: SavedChat): void {
    const system = data.messages.find(({ role }) => role === 'system');
    this.#system.value = system ? textOf(system) : '';
    void this.#change(id, data, time);
  }

  /** Keeps the conversation in the browser. If another tab has changed it meanwhile, both versions are kept. */
  #keep(): void {
    if ((timeOfChat(this.#id) ?? this.#time) !== this.#time) this.#id = newId();
    const data = this.#data();
    const title = titleOfChat(data);
    heading.textContent = title || 'A new conversation';
    if (title === '') {
      removeChat(this.#id);
      return;
    }
    try {
      const time = Date.now();
      keepChat({ id: this.#id, title, model: this.#model, time, data });
      this.#time = time;
    } catch {
      const why = 'The browser has no room for it, or does not allow it. The history can remove older conversations.';
      showNotice('chat', { title: 'This conversation is not kept', text: why });
    }
  }
}

type AnswerHow = ReturnType<OptionFields['read']> & {
  signal: AbortSignal;
  onPromptProgress: (progress: { done: number; total: number }) => void;
};

interface Call {
  id?: unknown;
  function: { name: string; arguments?: unknown };
}

/** Adds the parts of a message to an answer. */
function addMessage(view: AnswerView, message: ChatMessage): void {
  const thought = message['reasoning_content'];
  if (typeof thought === 'string') view.add('thought', thought);
  view.add('text', textOf(message));
  for (const { id, function: called } of (message['tool_calls'] as Call[] | undefined) ?? [])
    view.addCall(String(id), called.name, called.arguments);
}

function inWords({ generation }: Stats): string {
  if (!generation) return '';
  const { tokens, tokensPerSecond, firstTokenMs, end } = generation;
  return [
    `${tokens.length} tokens`,
    ...(tokensPerSecond === undefined ? [] : [`${format.rate(tokensPerSecond)} tokens/s`]),
    ...(firstTokenMs === undefined ? [] : [`first after ${format.milliseconds(firstTokenMs)}`]),
    ...(end && ENDS[end] ? [ENDS[end]] : []),
  ].join(' · ');
}

function toEnd(): void {
  transcript.scrollTop = transcript.scrollHeight;
}

/** Follows the end of the text as long as the reader sees it. */
function follow(): void {
  const { scrollHeight, scrollTop, clientHeight } = transcript;
  if (scrollHeight - scrollTop - clientHeight < NEAR + clientHeight / 3) toEnd();
}
