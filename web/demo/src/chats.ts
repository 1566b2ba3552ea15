// The conversations that this browser keeps, also as JSON.

import type { ChatMessage, ConversationData } from 'qsf';
import { randomName } from '../../src/random-name.js';

const PREFIX = 'qsf.chat.';
/** Letters of a title. */
const TITLE = 60;

export interface SavedChat {
  id: string;
  title: string;
  /** The name of the model that answered last. */
  model: string;
  /** Milliseconds since 1970 at the last change. */
  time: number;
  data: ConversationData;
}

/** Returns all kept conversations, the last one first, and reads one in each step. Damaged ones are left out. */
export function* allChats(): Generator<void, SavedChat[]> {
  const kept = storage();
  const keys = Array.from({ length: kept?.length ?? 0 }, (_, i) => kept?.key(i) ?? '');
  const chats: SavedChat[] = [];
  for (const key of keys.filter((key) => key.startsWith(PREFIX))) {
    const chat = chatOf(parsed(kept?.getItem(key) ?? ''));
    if (chat) chats.push(chat);
    yield;
  }
  return chats.sort((a, b) => b.time - a.time);
}

/** The reason why a conversation is not kept. */
export const NOT_KEPT = 'The browser has no room for it, or does not allow it.';

/** The name of a value that is stored to find out whether that works. */
export const TRIED = 'qsf.tried';
/** Whether the last conversation was refused. */
let isRefused = false;

/** Whether the browser keeps conversations, as far as is known. */
export function keepsChats(): boolean {
  if (isRefused) return false;
  try {
    localStorage.setItem(TRIED, '1');
    localStorage.removeItem(TRIED);
    return true;
  } catch {
    return false;
  }
}

/** The conversation that was kept last, as it is stored. A long one is not read again to know its time. */
let keptLast: { text: string; time: number } | undefined;

/** Keeps a conversation. Throws if the browser has no room, or its user does not allow it. */
export function keepChat(chat: SavedChat): void {
  isRefused = true;
  const text = JSON.stringify(chat);
  localStorage.setItem(PREFIX + chat.id, text);
  isRefused = false;
  keptLast = { text, time: chat.time };
}

/** Returns the time of a kept conversation's last change; undefined if it is not kept. */
export function timeOfChat(id: string): number | undefined {
  const text = storage()?.getItem(PREFIX + id) ?? '';
  return text === keptLast?.text ? keptLast.time : chatOf(parsed(text))?.time;
}

export function removeChat(id: string): void {
  storage()?.removeItem(PREFIX + id);
  isRefused = false;
}

/** Returns the browser's storage; undefined if its user does not allow it. */
function storage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

export const textOf = ({ content }: ChatMessage): string => (typeof content === 'string' ? content : '');

/** Returns the beginning of the first text of the user, in one line; an empty text if nothing has been said. */
export function titleOfChat({ messages, dropped = [] }: ConversationData): string {
  const said = [...dropped, ...messages].filter(({ role }) => role !== 'system');
  if (said.length === 0) return '';
  const first = said.find((message) => message.role === 'user' && textOf(message).trim() !== '');
  const line = first ? textOf(first).trim().replace(/\s+/g, ' ') : 'Untitled';
  return line.length > TITLE ? `${line.slice(0, TITLE - 1).trimEnd()}…` : line;
}

/** Whether a conversation has a text, in any case of letters. */
export function hasText({ title, data }: SavedChat, text: string): boolean {
  const all = [title, ...(data.dropped ?? []).map(textOf), ...data.messages.map(textOf)];
  return all.some((part) => part.toLowerCase().includes(text.toLowerCase()));
}

/** Returns the parts of a text with the conversations, one of which is written in each step. */
export function* toJson(chats: readonly SavedChat[]): Generator<void, string[]> {
  const parts: string[] = [];
  for (const chat of chats) {
    parts.push((parts.length === 0 ? '\n' : ',\n') + JSON.stringify(chat, undefined, 1));
    yield;
  }
  return ['{ "version": 1, "chats": [', ...parts, '\n] }\n'];
}

/** Returns the conversations of a text of toJson(). Throws a sentence for any other text. */
export function fromJson(text: string): SavedChat[] {
  const data = parsed(text) as { version?: unknown; chats?: unknown } | undefined;
  if (data?.version !== 1 || !Array.isArray(data.chats)) throw new Error('The file has no conversations of this page.');
  return data.chats.map((chat: unknown, i) => {
    const valid = chatOf(chat);
    if (valid === undefined) throw new Error(`Conversation ${i + 1} of the file is damaged.`);
    const { messages, dropped = [] } = valid.data;
    const calls = [...dropped, ...messages].flatMap((message) => (message['tool_calls'] as Call[] | undefined) ?? []);
    for (const { function: called } of calls) called.arguments = argumentsOf(called.arguments);
    return valid;
  });
}

/** A call of a message. */
export interface Call {
  function: { name: string; arguments?: unknown };
}

/** Returns the arguments of a call as templates write them. Other programs write them as text, and omit empty ones. */
function argumentsOf(given: unknown): unknown {
  return typeof given === 'string' && given !== '' ? (parsed(given) ?? given) : given || {};
}

/**
 * Keeps conversations of a file, one in each step, and returns how many were new. Nothing that is kept is lost: a
 * conversation that the kept one of the same id continues is left out, and one that differs from it gets an id of its own.
 */
export function* importChats(chats: readonly SavedChat[]): Generator<void, number> {
  let taken = 0;
  for (const chat of chats) {
    const kept = chatOf(parsed(storage()?.getItem(PREFIX + chat.id) ?? ''));
    if (!kept || !continues(kept, chat)) {
      keepChat(kept === undefined || continues(chat, kept) ? chat : { ...chat, id: randomName() });
      taken++;
    }
    yield;
  }
  return taken;
}

/** Whether the messages of `chat` begin with all of another one. */
function continues(chat: SavedChat, other: SavedChat): boolean {
  const [all, first] = [chat, other].map(({ data }) => [...(data.dropped ?? []), ...data.messages]);
  return JSON.stringify(all!.slice(0, first!.length)) === JSON.stringify(first);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a value as a kept conversation; undefined if it is none. */
function chatOf(value: unknown): SavedChat | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { id, title, model, time, data } = value as Record<string, unknown>;
  const texts = [id, title, model].every((text) => typeof text === 'string');
  if (!texts || typeof time !== 'number' || Number.isNaN(new Date(time).getTime())) return undefined;
  if (typeof data !== 'object' || data === null || isNested(data, DEEPEST)) return undefined;
  const { version, messages, dropped = [] } = data as Record<string, unknown>;
  if (version !== 1 || !isMessages(messages) || !isMessages(dropped)) return undefined;
  return value as SavedChat;
}

/** The deepest nesting of a conversation. The engine reads no deeper values. */
const DEEPEST = 128;

/** Whether a value has lists and objects in more than so many others. */
const isNested = (value: unknown, most: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (most === 0 || Object.values(value).some((member) => isNested(member, most - 1)));

const isMessages = (value: unknown): value is ChatMessage[] =>
  Array.isArray(value) &&
  value.every((message: unknown) => {
    if (typeof message !== 'object' || message === null) return false;
    const { role, content, tool_calls: calls = [] } = message as Record<string, unknown>;
    return typeof role === 'string' && ['string', 'undefined'].includes(typeof content) && isCalls(calls);
  });

const isCalls = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((call: unknown) => typeof (call as { function?: { name?: unknown } })?.function?.name === 'string');
