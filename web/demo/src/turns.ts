// The turns of a conversation: a message of the user with its answer, which may have several messages.

import type { ChatMessage, ConversationData } from 'qsf';
import { textOf } from './chats.js';
import type { AnswerView } from './message.js';

export interface Turn {
  /** The place of the question among the messages; -1 if there is none before the answer. */
  place: number;
  question: ChatMessage | undefined;
  /** Messages of the model, and the results of its calls. */
  answer: ChatMessage[];
}

/** Returns the turns of messages. */
export function turnsOf(messages: readonly ChatMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const [place, message] of messages.entries()) {
    if (message.role === 'user') turns.push({ place, question: message, answer: [] });
    else if (turns.length === 0) turns.push({ place: -1, question: undefined, answer: [message] });
    else turns.at(-1)!.answer.push(message);
  }
  return turns;
}

interface Call {
  id?: unknown;
  function: { name: string; arguments?: unknown };
}

/**
 * Returns a conversation that a question may follow. If it ends with calls, they get the results that are missing, and an
 * empty answer, because some templates refuse a question that comes without these.
 */
export function answered(data: ConversationData): ConversationData {
  const { messages } = data;
  const last = messages.findLastIndex(({ role }) => role !== 'tool');
  const calls = (messages[last]?.['tool_calls'] ?? []) as Call[];
  if (calls.length === 0) return data;
  const missing = calls.slice(messages.length - 1 - last).map(({ id, function: { name } }) => ({
    ...{ role: 'tool', name, tool_call_id: id, content: 'not run' },
  }));
  return { ...data, messages: [...messages, ...missing, { role: 'assistant', content: '' }] };
}

/** Adds the parts of a message to the view of an answer. */
export function addMessage(view: AnswerView, message: ChatMessage): void {
  if (message.role === 'tool') view.setResult(String(message['tool_call_id']), textOf(message));
  if (message.role !== 'assistant') return;
  const thought = message['reasoning_content'];
  if (typeof thought === 'string') view.addWhole('thought', thought);
  view.addWhole('text', textOf(message));
  for (const { id, function: called } of (message['tool_calls'] as Call[] | undefined) ?? [])
    view.addCall(String(id), called.name, called.arguments);
}
