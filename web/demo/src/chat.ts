// The mode of models with a chat template: a conversation that is kept in the browser.

import { Conversation } from 'qsf';
import type { ChatMessage, ChatStream, ConversationData, QSF } from 'qsf';
import { randomName } from '../../src/random-name.js';
import { copy, smallButton } from './buttons.js';
import { NOT_KEPT, allChats, keepChat, removeChat, textOf, timeOfChat, titleOfChat } from './chats.js';
import type { SavedChat } from './chats.js';
import { converse } from './converse.js';
import { byId, ignoreDoubleClicks, isOff, make, setOff } from './dom.js';
import { growing } from './field.js';
import { setUpHistory } from './history.js';
import { AnswerView, userMessage } from './message.js';
import { hideNotice, showNotice } from './notice.js';
import type { OptionFields } from './options.js';
import { noteRate } from './rate.js';
import { inSlices, sliced } from './slices.js';
import { showingWork, unlessAborted } from './stage.js';
import type { Stage } from './stage.js';
import { inWords } from './summary.js';
import { tools } from './tools.js';
import { addMessage, answered, turnsOf } from './turns.js';
import type { Turn } from './turns.js';

const IDEAS = ['Explain tides to a child.', 'Write a haiku about rain.', 'Give me three names for a bakery.'];

/** Pixels by which the end may be out of view and still counts as seen. */
const NEAR = 60;

const isTouched = matchMedia('(pointer: coarse)');
const composer = byId('composer', HTMLFormElement);
const field = byId('message', HTMLTextAreaElement);
const fill = growing(field);
const send = byId('send', HTMLButtonElement);
const note = byId('chat-note', HTMLElement);
const transcript = byId('transcript', HTMLElement);
const heading = byId('chat-title', HTMLElement);

export class ChatMode {
  readonly #stage: Stage;
  readonly #options: OptionFields;
  readonly #system = make('textarea', { id: 'system', rows: '2', dir: 'auto' });
  readonly #tools = make('input', { type: 'checkbox', id: 'tools' });
  #llm!: QSF;
  #model = '';
  #conversation!: Conversation;
  #id = randomName();
  /** The time of the kept conversation's last change, as this page knows it. */
  #time = 0;
  #isWriting = false;
  /** Settles when the answer under way has ended. */
  #answering: Promise<void> = Promise.resolve();
  /** The text of the answer under way, since its last calls. */
  #partly = '';
  /** The last answer on the page. */
  #last: AnswerView | undefined;
  #endDrawing = (): unknown => undefined;

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
    // A page that is left may not come back.
    for (const leave of ['pagehide', 'visibilitychange']) addEventListener(leave, () => this.#partly && this.#keep());
    byId('chat-new', HTMLButtonElement).addEventListener('click', () => void this.#begin());
    setUpHistory({
      open: (chat) => this.#openChat(chat),
      removed: (id) => {
        // An answer under way keeps the conversation when it ends.
        if (id === this.#id) void this.#begin().then(() => removeChat(id));
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

  /** Shows the conversation that was kept last, unless one has begun. */
  async goOn(): Promise<void> {
    const [newest] = await sliced(allChats());
    if (newest && this.#conversation.messages.length === 0) this.#openChat(newest);
  }

  update(refused: boolean, writing: boolean): void {
    this.#isWriting = writing;
    send.textContent = writing ? 'Stop' : 'Send';
    setOff(send, refused && !writing);
    if (transcript.classList.contains('is-writing') === writing) return;
    // The buttons that appear after an answer take room, so that its end would leave the view.
    const atEnd = seesEnd();
    transcript.classList.toggle('is-writing', writing);
    if (atEnd) toEnd();
  }

  #setUpComposer(): void {
    // A long message and a note take room from the text above them.
    new ResizeObserver(() => {
      const inside = document.activeElement;
      if (inside instanceof HTMLTextAreaElement && transcript.contains(inside))
        inside.scrollIntoView({ block: 'nearest' });
      else follow();
    }).observe(transcript);
    field.addEventListener('keydown', (event) => {
      const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.isComposing;
      if (event.key !== 'Enter' || !isPlain || isTouched.matches) return;
      event.preventDefault();
      if (!this.#isWriting) composer.requestSubmit();
    });
    ignoreDoubleClicks(send);
    composer.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (this.#isWriting) this.#stage.stop();
      else if (text === '') field.focus();
      else if (!isOff(send)) {
        fill('');
        void this.#send(text);
      }
    });
  }

  #send(text: string): Promise<void> {
    return this.#answer(
      text,
      () => this.#placeOf(this.#conversation.messages.length),
      (how) => this.#conversation.send(text, how),
    );
  }

  /** Answers the message at `place` anew, with another text if one is given. */
  #again(place: number, text: string): Promise<void> {
    return this.#answer(
      text,
      () => place,
      (how) => this.#conversation.edit(this.#indexOf(place), text, how),
    );
  }

  /**
   * Returns the place of message `i` on the page: the number of messages before it, dropped ones included and those of the
   * system excluded. It stays the same when messages are dropped, or the system's message comes or goes.
   */
  #placeOf(i: number): number {
    const { messages, dropped } = this.#conversation;
    return i + dropped.length - numberOfSystem(messages);
  }

  /** Returns the index of the message at a place; negative if it was dropped. */
  #indexOf(place: number): number {
    const { messages, dropped } = this.#conversation;
    return place < dropped.length ? -1 : place - dropped.length + numberOfSystem(messages);
  }

  /** Shows a message of the user at the place `at` instead of all later ones, and its answer. */
  #answer(text: string, at: () => number, begin: (how: AnswerHow) => ChatStream): Promise<void> {
    if (this.#isWriting) return this.#answering;
    const opening = this.#stage.model();
    const again = () => this.#answer(text, at, begin);
    return (this.#answering = this.#stage.write('chat', again, async (signal) => {
      const waiting = userMessage(text, undefined);
      const view = new AnswerView(this.#model, follow);
      const hadFocus = transcript.contains(document.activeElement);
      const show = () => {
        for (const { classList } of [waiting, view.element]) classList.remove(OLD);
        if (field.value === text) fill('');
        this.#endLast();
        this.#showUntil(at());
        transcript.append(waiting, view.element);
        toEnd();
      };
      show();
      // The button that was pressed is gone. A field with the focus opens the keyboard of a phone.
      if (hadFocus) (isTouched.matches ? transcript : field).focus({ preventScroll: true });
      transcript.setAttribute('aria-busy', 'true');
      note.textContent = 'Opening the model …';
      let before = this.#conversation.messages;
      let words = '';
      try {
        const llm = await unlessAborted(opening, signal);
        if (llm === undefined) return;
        // A model that was opened meanwhile has drawn the conversation without them.
        if (!view.element.isConnected || isOld(view.element)) show();
        before = this.#take(this.#data()).messages;
        note.textContent = 'Reading …';
        words = await this.#read(llm, view, begin, signal);
      } finally {
        note.textContent = '';
        transcript.setAttribute('aria-busy', 'false');
        this.#partly = '';
        const hasFailed = this.#conversation.messages === before;
        const data = this.#data();
        if (answered(data) !== data) this.#take(answered(data));
        this.#keep();
        if (hasFailed) {
          // Nothing that was written is lost: neither this text nor the next one.
          if (!before.some((message) => textOf(message) === text)) fill(`${text}\n${field.value}`.trim());
          this.#draw();
        } else {
          const { messages } = this.#conversation;
          const at = this.#placeOf(messages.findLastIndex(({ role }) => role === 'user'));
          waiting.replaceWith(this.#userView(at, text));
          this.#endAnswer(view, at, words);
          this.#last = view;
          this.#divide();
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
          if (part.type === 'text') this.#partly += part.text;
          if (part.type === 'call') view.addCall(part.id, part.name, part.arguments);
          else view.add(part.type, part.text);
        },
        called: (id, value) => view.setResult(id, value),
        extend: (messages) => {
          const data = this.#data();
          this.#partly = '';
          return this.#take({ ...data, messages: [...data.messages, ...messages] });
        },
        send: (conversation, message) => conversation.send(message, how),
      });
    });
    noteRate(stats);
    return inWords(stats);
  }

  /** Ends an answer to the message at `place` with its buttons. That to a dropped message can only be copied. */
  #endAnswer(view: AnswerView, place: number, words: string): void {
    const copies = smallButton('Copy', () => void copy(view.text, copies));
    copies.classList.add('copies');
    const isDropped = this.#indexOf(place) < 0;
    const others = isDropped ? [] : [smallButton('Branch', () => void this.#branch(place)), this.#retryButton(place)];
    view.end(words, copies, ...others);
  }

  #retryButton(place: number): HTMLElement {
    const text = () => textOf(this.#conversation.messages[this.#indexOf(place)]!);
    const button = smallButton('Retry', () => void this.#again(place, text()));
    button.classList.add('last-only');
    return button;
  }

  /** Goes on with a copy of the conversation that ends with the answer to the message at `place`. */
  async #branch(place: number): Promise<void> {
    const { messages } = this.#conversation;
    const i = this.#indexOf(place);
    const next = messages.findIndex(({ role }, at) => at > i && role === 'user');
    await this.#change(randomName(), this.#conversation.fork(next < 0 ? messages.length : next).toJSON());
    this.#keep();
    note.textContent = 'This is a copy.';
  }

  #userView(place: number, text: string): HTMLElement {
    const isDropped = this.#indexOf(place) < 0;
    const box = userMessage(text, isDropped ? undefined : (now) => void this.#again(place, now));
    box.dataset['place'] = String(place);
    return box;
  }

  /** Removes the views of the message at `place` and of all later ones. */
  #showUntil(place: number): void {
    const first = views().find((view) => placeOnPage(view) >= place);
    if (first) while (first.nextSibling) first.nextSibling.remove();
    first?.remove();
    for (const welcome of transcript.querySelectorAll('.welcome')) welcome.remove();
  }

  /** Draws the line after the messages that were dropped, and takes the buttons from those. */
  #divide(): void {
    const { dropped } = this.#conversation;
    if (dropped.length === 0) return;
    const words = 'The context has no room for the messages above.';
    const line =
      views().find(({ classList }) => classList.contains('divide')) ?? make('p', { class: 'small divide' }, words);
    const all = views();
    const end = all.findIndex((view) => placeOnPage(view) >= dropped.length);
    for (const view of all.slice(all.indexOf(line) + 1, end < 0 ? undefined : end)) {
      const place = placeOnPage(view);
      if (place >= 0) view.replaceWith(this.#userView(place, textOf(dropped[place]!)));
      else for (const button of view.querySelectorAll('.message-actions button:not(.copies)')) button.remove();
    }
    transcript.insertBefore(line, all[end] ?? null);
  }

  /** Draws the whole conversation: its end at once, and the messages before in slices. */
  #draw(): void {
    const { messages, dropped } = this.#conversation;
    this.#endDrawing();
    this.#last = undefined;
    // Those that are removed are not laid out meanwhile.
    for (const view of transcript.children) view.classList.add(OLD);
    heading.textContent = titleOfChat(this.#data()) || 'New conversation';
    const turns = turnsOf([...dropped, ...messages.filter(({ role }) => role !== 'system')]);
    // A message may become higher or lower after its slice, so that only a reader who scrolls leaves the end.
    let stays = true;
    const scrolls = new AbortController();
    const leave = () => (stays = false);
    for (const kind of ['wheel', 'touchmove', 'pointerdown', 'keydown']) {
      transcript.addEventListener(kind, leave, { passive: true, signal: scrolls.signal });
    }
    const end = inSlices(this.#drawing(turns), (slice) => {
      stays ||= seesEnd();
      slice();
      if (stays) toEnd();
    });
    this.#endDrawing = () => {
      scrolls.abort();
      end();
    };
  }

  /** Removes the views of another conversation, and draws the turns of this one. */
  *#drawing(turns: readonly Turn[]): Generator<void> {
    if (turns.length === 0) transcript.append(this.#welcome());
    for (const view of [...transcript.children].filter(isOld)) {
      if (isOld(view)) view.remove();
      yield;
    }
    yield* this.#drawTurns(turns);
  }

  /** Draws turns above the ones that are drawn, the last one first, a part of a text in each step. */
  *#drawTurns(turns: readonly Turn[]): Generator<void> {
    for (const { place, question, answer } of turns.toReversed()) {
      const view = answer.length === 0 ? undefined : new AnswerView(this.#model, () => undefined);
      for (const message of answer) addMessage(view!, message);
      if (view) this.#endAnswer(view, place, '');
      if (place !== turns.at(-1)!.place) view?.endLast();
      else this.#last = view;
      const words = question && this.#userView(place, textOf(question));
      transcript.prepend(...[words, view?.element].filter((element) => element !== undefined));
      yield;
      if (view) yield* view.showTexts();
    }
    this.#divide();
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
    // The action of a notice is for the conversation that it came with.
    hideNotice();
    if (this.#isWriting) this.#stage.stop();
    await this.#answering;
    this.#take(data);
    this.#id = id;
    this.#time = time;
    this.#draw();
    note.textContent = '';
    field.focus();
  }

  #begin(): Promise<void> {
    return this.#change(randomName(), { version: 1, messages: [] });
  }

  #openChat({ id, data, time }: SavedChat): void {
    const system = data.messages.find(({ role }) => role === 'system');
    this.#system.value = system ? textOf(system) : '';
    void this.#change(id, data, time);
  }

  /**
   * Keeps the conversation in the browser, with an answer under way. If another tab has changed it meanwhile, both versions
   * are kept.
   */
  #keep(): void {
    if ((timeOfChat(this.#id) ?? this.#time) !== this.#time) this.#id = randomName();
    const { messages, ...others } = this.#data();
    const more = this.#partly === '' ? [] : [{ role: 'assistant', content: this.#partly }];
    const data = { ...others, messages: [...messages, ...more] };
    const title = titleOfChat(data);
    heading.textContent = title || 'New conversation';
    if (title === '') {
      removeChat(this.#id);
      return;
    }
    try {
      const time = Date.now();
      keepChat({ id: this.#id, title, model: this.#model, time, data });
      this.#time = time;
    } catch {
      const text = `${NOT_KEPT} The history can remove older conversations.`;
      showNotice('chat', { title: 'This conversation is not kept', text });
    }
  }
}

type AnswerHow = ReturnType<OptionFields['read']> & {
  signal: AbortSignal;
  onPromptProgress: (progress: { done: number; total: number }) => void;
};

/** Returns the number of the system's messages, which are the first ones. */
const numberOfSystem = (messages: readonly ChatMessage[]): number => (messages[0]?.role === 'system' ? 1 : 0);

/** The class of views that will be removed, which are not shown. */
const OLD = 'is-old';
const isOld = (view: Element): boolean => view.classList.contains(OLD);

const views = (): HTMLElement[] =>
  [...transcript.children].filter((view) => view instanceof HTMLElement && !isOld(view)) as HTMLElement[];

/** Returns the place of a message of the user; -1 for anything else. */
const placeOnPage = (view: HTMLElement): number => Number(view.dataset['place'] ?? -1);

/** The position at which the end was last shown. */
let shownEnd = -1;

function toEnd(): void {
  transcript.scrollTop = transcript.scrollHeight;
  shownEnd = transcript.scrollTop;
}

function seesEnd(): boolean {
  const { scrollHeight, scrollTop, clientHeight } = transcript;
  const isNear = scrollHeight - scrollTop - clientHeight < NEAR + clientHeight / 3;
  return isNear || scrollTop === shownEnd; // much may have come since
}

/** Follows the end of the text as long as the reader sees it. */
function follow(): void {
  if (seesEnd()) toEnd();
}
