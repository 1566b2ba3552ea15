// The list of kept conversations: opened, removed, searched, exported and imported.

import {
  NOT_KEPT,
  TRIED,
  allChats,
  fromJson,
  hasText,
  importChats,
  keepsChats,
  removeChat,
  toJson,
  toMarkdown,
} from './chats.js';
import type { SavedChat } from './chats.js';
import { byId, make } from './dom.js';
import { smallButton } from './message.js';
import { openSheet, setUpSheet } from './sheet.js';

const sheet = byId('history', HTMLDialogElement);
const rows = byId('history-rows', HTMLElement);
const search = byId('history-search', HTMLInputElement);
const text = byId('history-text', HTMLElement);
const file = byId('import-json', HTMLInputElement);

const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const hour = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

/** Returns the time of a conversation: the hour of today, the date of other days. */
const when = (time: number): string => {
  const day = date.format(time);
  return day === date.format(Date.now()) ? hour.format(time) : day;
};

export interface HistoryUse {
  open(chat: SavedChat): void;
  removed(id: string): void;
  /** The id of the conversation on the page. */
  current(): string;
}

export function setUpHistory(use: HistoryUse): void {
  setUpSheet(sheet);
  byId('chat-list', HTMLButtonElement).addEventListener('click', () => {
    search.value = '';
    show(use);
    openSheet(sheet);
  });
  search.addEventListener('input', () => show(use));
  byId('export-json', HTMLButtonElement).addEventListener('click', () =>
    download('conversations.json', 'application/json', toJson(allChats())),
  );
  file.addEventListener('change', () => void take(use));
  // Another tab has kept or removed one.
  addEventListener('storage', ({ key }) => {
    if (sheet.open && key !== TRIED) show(use);
  });
}

function show(use: HistoryUse): void {
  const all = allChats();
  const found = all.filter((chat) => hasText(chat, search.value.trim()));
  const count = `${found.length} of ${all.length}, kept in this browser only.`;
  text.textContent = keepsChats()
    ? all.length === 0
      ? 'None yet. They are kept in this browser only.'
      : count
    : all.length === 0
      ? `None is kept. ${NOT_KEPT}`
      : `${count} The last one is not kept. ${NOT_KEPT}`;
  search.hidden = all.length === 0;
  rows.replaceChildren(...found.map((chat) => row(chat, use)));
}

function row(chat: SavedChat, use: HistoryUse): HTMLElement {
  const { id, title, model, time, data } = chat;
  const said = data.messages.filter(({ role }) => role === 'user').length;
  const messages = said === 1 ? 'one message' : `${said} messages`;
  const open = make('button', { type: 'button', class: 'row-title' }, title);
  if (id === use.current()) open.setAttribute('aria-current', 'true');
  open.addEventListener('click', () => {
    sheet.close();
    use.open(chat);
  });
  const named = (button: HTMLButtonElement, words: string) => {
    button.setAttribute('aria-label', `${words} ${title}`);
    return button;
  };
  const markdown = smallButton('Markdown', () => download(`${nameOf(title)}.md`, 'text/markdown', toMarkdown(chat)));
  const remove = smallButton('Remove', () => {
    removeChat(id);
    use.removed(id);
    show(use);
    (search.hidden ? file : search).focus();
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
    const chats = fromJson(await chosen.text());
    const taken = importChats(chats);
    show(use);
    const said = taken === 1 ? 'One conversation was imported.' : `${taken} conversations were imported.`;
    const others = taken === 0 ? 'They are here already.' : `${said} The others are here already.`;
    text.textContent = taken === chats.length ? said : others;
  } catch (error) {
    show(use);
    const said = error instanceof Error ? error.message : String(error);
    const isRefused = error instanceof DOMException && ['QuotaExceededError', 'SecurityError'].includes(error.name);
    text.textContent = isRefused ? `Not all was imported. ${NOT_KEPT}` : said;
  }
  file.value = '';
}

const nameOf = (title: string) => title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'conversation';

function download(name: string, type: string, content: string): void {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
