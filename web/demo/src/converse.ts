// One answer of a conversation, with the calls of tools that it makes.

import type { AnswerPart, ChatMessage, ChatResult, ChatStream, Conversation } from 'qsf';
import { runTool } from './tools.js';

/** Rounds of calls in one answer. A small model may call for ever. */
const MOST_ROUNDS = 4;

export interface Answering {
  /** Ends the tools. */
  signal?: AbortSignal;
  part(part: AnswerPart): void;
  /** Gets the result of a call. */
  called(id: string, result: string): void;
  /** Returns the conversation with further messages. */
  extend(messages: readonly ChatMessage[]): Conversation;
  /** Answers a further message. */
  send(conversation: Conversation, message: ChatMessage): ChatStream;
}

/** Reads an answer to its end, runs the tools that it calls, and answers their results. Returns the last result. */
export async function converse(answer: ChatStream, answering: Answering): Promise<ChatResult> {
  for (let round = 1; ; round++) {
    for await (const part of answer.parts()) answering.part(part);
    const result = await answer.result;
    const calls = result.message.tool_calls ?? [];
    if (calls.length === 0 || round > MOST_ROUNDS) return result;
    const results: ChatMessage[] = [];
    for (const { id, function: called } of calls) {
      const content = await runTool(called.name, called.arguments, answering.signal);
      answering.called(id, content);
      results.push({ role: 'tool', name: called.name, tool_call_id: id, content });
    }
    answer = answering.send(answering.extend(results.slice(0, -1)), results.at(-1)!);
  }
}
