// The list of kept conversations: opened, removed, searched, exported and imported.

import { smallButton } from './buttons.js';
import { fromMarkdown, toMarkdown } from './chat-markdown.js';
import { NOT_KEPT, TRIED, allChats, fromJson, hasText, importChats, keepsChats, removeChat, toJson } from './chats.js';
import type { SavedChat } from './chats.js';
import { byId, make, putAt } from './dom.js';
import { openSheet, setUpSheet } from './sheet.js';
import { nextTask, sliced } from './slices.js';

const sheet = byId('history', HTMLDialogElement);
const rows = byId('history-rows', HTMLElement);
const search = byId('history-search', HTMLInputElement);
const text = byId('history-text', HTMLElement);
const file = byId('import-json', HTMLInputElement);
const exported = byId('export-json', HTMLButtonElement);

/** Formats, each of which takes a while to be made, so that it is made when it is used. */
let date: Intl.DateTimeFormat | undefined;
let hour: Intl.DateTimeFormat | undefined;

/** Returns the time of a conversation: the hour of today, the date of other days. */
function when(time: number): string {
  if (new Date(time).toDateString() === new Date().toDateString()) {
    hour ??= new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
    return hour.format(time);
  }
  date ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
  return date.format(time);
}

/** Rows that are added at once: as many as a dialog shows, so that the ones in view move once. */
const TOGETHER = 20;

export interface HistoryUse {
  open(chat: SavedChat): void;
  removed(id: string): void;
  /** The id of the conversation on the page. */
  current(): string;
}

/** The conversations that the open dialog lists, and their rows by their ids. Both are gone when it is closed. */
let all: readonly SavedChat[] | undefined;
const made = new Map<string, { time: number; isCurrent: boolean; element: HTMLElement }>();
/** The number of the last call of show(), which replaces the ones before it. */
let shows = 0;

export function setUpHistory(use: HistoryUse): void {
  setUpSheet(sheet);
  byId('chat-list', HTMLButtonElement).addEventListener('click', () => {
    search.value = '';
    openSheet(sheet);
    void nextTask().then(() => showAgain(use));
  });
  sheet.addEventListener('close', () => {
    shows++;
    all = undefined;
    made.clear();
    rows.replaceChildren();
    sheet.style.height = '';
  });
  search.addEventListener('input', () => {
    // Fewer rows would move the field under the words that are typed.
    if (sheet.style.height === '') sheet.style.height = `${String(sheet.getBoundingClientRect().height)}px`;
    void show(use);
  });
  exported.addEventListener('click', () => void exportAll());
  file.addEventListener('change', () => void take(use));
  // Another tab has kept or removed one.
  addEventListener('storage', ({ key }) => {
    if (sheet.open && key !== TRIED) void showAgain(use);
  });
}

/** Shows the conversations that are kept now. */
function showAgain(use: HistoryUse): Promise<void> {
  all = undefined;
  return show(use);
}

/** Shows the conversations that have the text of the search, in slices. Another call ends it. */
function show(use: HistoryUse): Promise<void> {
  return sliced(drawing(use, ++shows));
}

function* drawing(use: HistoryUse, number: number): Generator<void> {
  const isOld = () => number !== shows;
  const chats = all ?? (yield* allChats());
  if (isOld()) return;
  all = chats;
  const found: SavedChat[] = [];
  for (const chat of chats) {
    if (hasText(chat, search.value.trim())) found.push(chat);
    yield;
    if (isOld()) return;
  }
  const count = `${found.length} of ${chats.length}, kept in this browser only.`;
  text.textContent = keepsChats()
    ? chats.length === 0
      ? 'None yet. They are kept in this browser only.'
      : count
    : chats.length === 0
      ? `None is kept. ${NOT_KEPT}`
      : `${count} The last one is not kept. ${NOT_KEPT}`;
  search.hidden = exported.hidden = chats.length === 0;
  for (let first = 0; first < found.length; first += TOGETHER) {
    const group: HTMLElement[] = [];
    for (const chat of found.slice(first, first + TOGETHER)) {
      group.push(rowOf(chat, use));
      yield;
      if (isOld()) return;
    }
    for (const [i, element] of group.entries()) putAt(rows, first + i, element);
    yield;
    if (isOld()) return;
  }
  while (rows.children.length > found.length) rows.lastChild!.remove();
}

/** Returns the row of a conversation, which is made again only if it has changed. */
function rowOf(chat: SavedChat, use: HistoryUse): HTMLElement {
  const isCurrent = chat.id === use.current();
  const before = made.get(chat.id);
  if (before?.time === chat.time && before.isCurrent === isCurrent) return before.element;
  before?.element.remove();
  const element = row(chat, use);
  made.set(chat.id, { time: chat.time, isCurrent, element });
  return element;
}

async function exportAll(): Promise<void> {
  const parts = await sliced(toJson(await sliced(allChats())));
  download('conversations.json', 'application/json', parts);
}

function row(chat: SavedChat, use: HistoryUse): HTMLElement {
  const { id, title, model, time, data } = chat;
  const said = data.messages.filter(({ role }) => role === 'user').length;
  const messages = said === 1 ? 'one message' : `${said} messages`;
  const open = make('button', { type: 'button', class: 'row-title', dir: 'auto' }, title);
  if (id === use.current()) open.setAttribute('aria-current', 'true');
  open.addEventListener('click', () => {
    sheet.close();
    // A dialog that closes has a task for itself.
    void nextTask().then(() => use.open(chat));
  });
  const named = (button: HTMLButtonElement, words: string) => {
    button.setAttribute('aria-label', `${words} ${title}`);
    return button;
  };
  const markdown = smallButton('Markdown', () => download(`${nameOf(title)}.md`, 'text/markdown', [toMarkdown(chat)]));
  const remove = smallButton('Remove', () => {
    removeChat(id);
    use.removed(id);
    void showAgain(use).then(() => (search.hidden ? file : search).focus());
  });
  return make(
    'li',
    {},
    make('div', { class: 'row-text' }, open, make('small', {}, `${model} · ${messages} · ${when(time)}`)),
    make('div', { class: 'row-actions' }, named(markdown, 'Export as Markdown:'), named(remove, 'Remove')),
  );
}

/** Keeps the conversations of a file. */
async function take(use: HistoryUse): Promise<void> {
  const [chosen] = file.files ?? [];
  if (!chosen) return;
  try {
    const written = await chosen.text();
    const chats = isMarkdown(chosen) ? [fromMarkdown(written)] : fromJson(written);
    const taken = await sliced(importChats(chats));
    await showAgain(use);
    const said = taken === 1 ? 'One conversation was imported.' : `${taken} conversations were imported.`;
    const others = taken === 0 ? 'They are here already.' : `${said} The others are here already.`;
    text.textContent = taken === chats.length ? said : others;
  } catch (error) {
    await showAgain(use);
    const said = error instanceof Error ? error.message : String(error);
    const isRefused = error instanceof DOMException && ['QuotaExceededError', 'SecurityError'].includes(error.name);
    text.textContent = isRefused ? `Not all was imported. ${NOT_KEPT}` : said;
  }
  file.value = '';
}

const isMarkdown = ({ name, type }: File) => type === 'text/markdown' || /\.(md|markdown)$/i.test(name);

const nameOf = (title: string) => title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'conversation';

function download(name: string, type: string, parts: string[]): void {
  const href = URL.createObjectURL(new Blob(parts, { type }));
  make('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
