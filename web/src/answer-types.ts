// The public types of answers: their parts, the messages that they become, and the streams that give them.
import type { ChatCompletions } from './openai-types.js';
import type { ChatMessage, ChatOptions, GenerationResult, GenerationStream } from './types.js';

/** A part of an answer's text, or of the thoughts before it. Each continues the last one of its type. */
export interface TextPart {
  type: 'text' | 'thought';
  text: string;
}

/** The whole call of a tool. `arguments` is JSON. */
export interface CallPart {
  type: 'call';
  id: string;
  name: string;
  arguments: string;
}

export type AnswerPart = TextPart | CallPart;

/** The call of a tool in a message, as OpenAI's interface has it. */
export interface ToolCall {
  id: string;
  type: 'function';
  /** `arguments` is JSON. */
  function: { name: string; arguments: string };
}

/** An answer as a message, which the next turn's messages may contain. */
export interface AnswerMessage {
  role: 'assistant';
  /** The text without thoughts and calls; null if the answer has calls only. */
  content: string | null;
  reasoning_content?: string;
  tool_calls?: ToolCall[];
}

/** The result of an answer. `message` is undefined if the engine does not divide answers into parts. */
export interface ChatResult extends GenerationResult {
  message?: AnswerMessage;
}

/** An answer: a GenerationStream, with parts if the engine divides answers into them. */
export interface ChatStream extends GenerationStream<ChatResult> {
  /** Returns the parts of the answer from its beginning. */
  parts?(): AsyncIterable<AnswerPart>;
}

/** chat() of a model, which has OpenAI's shape as a member. */
export interface Chat {
  /**
   * Answers a conversation by the model's chat template, or by another one, piece by piece. A text is one message of the
   * user. The part that the sequence has already is not computed again, so each turn passes all messages. Otherwise as
   * generate().
   */
  (messages: string | readonly ChatMessage[], options?: ChatOptions): ChatStream;
  /** Answers in OpenAI's shape. */
  readonly completions: ChatCompletions;
}
