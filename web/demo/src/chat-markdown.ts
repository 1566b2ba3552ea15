// Conversations as Markdown, which readers understand and this page reads again. It has no thoughts.

import { randomName } from '../../src/random-name.js';
import type { ChatMessage } from 'qsf';
import { textOf } from './chats.js';
import type { Call, SavedChat } from './chats.js';

const USER = 'You';
const SYSTEM = 'System';
const RESULT = 'Result of ';
/** A heading that begins a message, or one that a text has, with a backslash more for each time that it was written. */
const HEADING = /^(\\*)## (.*)$/;

/** Whether a heading begins a message. */
const isHead = (heading: string, model: string): boolean =>
  [USER, SYSTEM, model].includes(heading) || heading.startsWith(RESULT);

/**
 * Returns a conversation as Markdown. Each message has a heading with its role. Lines of texts that look like such headings
 * get a backslash, which Markdown does not show; in an answer only those that are the same as one.
 */
export function toMarkdown({ title, model, data }: SavedChat): string {
  const parts = [...(data.dropped ?? []), ...data.messages].flatMap((message) => {
    const { role } = message;
    const calls = (message['tool_calls'] as Call[] | undefined) ?? [];
    const call = calls.map(({ function: f }) => `\`${f.name}(${JSON.stringify(f.arguments)})\``);
    const names: Partial<Record<string, string>> = {
      ...{ user: USER, assistant: model, system: SYSTEM, tool: RESULT + String(message['name']) },
    };
    const lines = textOf(message).split('\n');
    const marked = lines.map((line) => {
      const [, slashes, heading] = HEADING.exec(line) ?? [];
      if (slashes === undefined || heading === undefined) return line;
      return slashes !== '' || role !== 'assistant' || isHead(heading.trim(), model) ? `\\${line}` : line;
    });
    const text = [marked.join('\n'), ...call].filter((part) => part !== '').join('\n\n');
    return text === '' ? [] : [`## ${names[role] ?? role}\n\n${text}`];
  });
  return [`# ${title}`, ...parts].join('\n\n') + '\n';
}

/** Returns the conversation of a text of toMarkdown(), with an id and a time of its own. Throws a sentence for other texts. */
export function fromMarkdown(text: string): SavedChat {
  const [first = '', ...lines] = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const title = /^# (.+)/.exec(first)?.[1];
  let model = '';
  const parts: { head: string; lines: string[] }[] = [];
  for (const line of lines) {
    const [, slashes, heading = ''] = HEADING.exec(line) ?? [];
    const head = heading.trim();
    if (slashes === '' && model === '' && !isHead(head, '')) model = head;
    if (slashes === '' && isHead(head, model)) parts.push({ head, lines: [] });
    else parts.at(-1)?.lines.push(slashes ? line.slice(1) : line);
  }
  if (title === undefined || !parts.some(({ head }) => head === USER))
    throw new Error('The file has no conversation of this page.');
  const messages = parts.map(({ head, lines }, i): ChatMessage => {
    const content = lines.join('\n').replace(/^\n|\n+$/g, '');
    if (head.startsWith(RESULT)) return { role: 'tool', name: head.slice(RESULT.length), content };
    if (head !== model) return { role: head === USER ? 'user' : 'system', content };
    const after = parts.slice(i + 1).findIndex(({ head }) => !head.startsWith(RESULT));
    return answerOf(content, after < 0 ? parts.length - i - 1 : after);
  });
  numberCalls(messages);
  return { id: randomName(), title, model, time: Date.now(), data: { version: 1, messages } };
}

/** Returns an answer, whose last paragraphs are calls if as many results follow. */
function answerOf(text: string, results: number): ChatMessage {
  const paragraphs = text.split('\n\n');
  const calls = paragraphs.slice(Math.max(0, paragraphs.length - results)).map(callOf);
  if (results === 0 || calls.length < results || calls.includes(undefined)) return { role: 'assistant', content: text };
  return { role: 'assistant', content: paragraphs.slice(0, -results).join('\n\n'), tool_calls: calls };
}

/** Returns the call of a paragraph, or undefined. */
function callOf(paragraph: string): (Call & { type: string }) | undefined {
  const [, name, values] = /^`([^`(]+)\((\{.*\})\)`$/.exec(paragraph) ?? [];
  if (name === undefined || values === undefined) return undefined;
  try {
    return { type: 'function', function: { name, arguments: JSON.parse(values) as unknown } };
  } catch {
    return undefined;
  }
}

/** Gives calls ids, and their results the same. */
function numberCalls(messages: readonly ChatMessage[]): void {
  let waiting: string[] = [];
  let count = 0;
  for (const message of messages) {
    const calls = message['tool_calls'] as { id?: string }[] | undefined;
    if (message.role === 'tool') message['tool_call_id'] = waiting.shift() ?? idOf(count++);
    else waiting = (calls ?? []).map((call) => (call.id = idOf(count++)));
  }
}

/** Returns the id of a call. Some templates refuse ids of other lengths. */
const idOf = (number: number): string => String(number).padStart(9, '0');
