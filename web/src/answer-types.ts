// The public types of answers: their parts, the messages that they become, and the streams that give them.
import type { ChatCompletions } from './openai-types.js';
import type { ChatMessage, ChatOptions, GenerationResult, GenerationStream } from './types.js';

/** A part of an answer's text for the user, or of the thoughts before it. Each continues the last of its type. */
export interface TextPart {
  type: 'text' | 'thought';
  text: string;
}

/** A whole call of a tool. */
export interface CallPart {
  type: 'call';
  /** Nine letters and digits. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

export type AnswerPart = TextPart | CallPart;

/** A call of a tool in a message. */
export interface ToolCall {
  /** Nine letters and digits. */
  id: string;
  type: 'function';
  function: {
    name: string;
    /** A value, as templates take it, and not its text in JSON. */
    arguments: Record<string, unknown>;
  };
}

/** An answer as a message for the next turn. */
export interface AssistantMessage extends ChatMessage {
  role: 'assistant';
  /** The text for the user. */
  content: string;
  /** The model's thoughts, if it had some. */
  reasoning_content?: string;
  /** The calls, if there are any. Messages with the role `tool` tell their results, by `tool_call_id`. */
  tool_calls?: ToolCall[];
}

/** The result of an answer. */
export interface ChatResult extends GenerationResult {
  /** The answer, as the message that the conversation continues with. */
  message: AssistantMessage;
}

/** An answer: its text for the user, without thoughts and calls. */
export interface ChatStream extends GenerationStream<ChatResult> {
  /** Yields all parts of the answer from its beginning. */
  parts(): AsyncGenerator<AnswerPart, ChatResult, undefined>;
}

/** chat() of a model, which has OpenAI's shape as a member. */
export interface Chat {
  /**
   * Answers a conversation by the model's chat template, or by another one, piece by piece: the text for the user, or by
   * `parts()` thoughts and calls of tools too. A text is one message of the user. `result.message` continues the
   * conversation. The part that the sequence has already is not computed again, so each turn passes all messages.
   * Otherwise as generate().
   */
  (messages: string | readonly ChatMessage[], options?: ChatOptions): ChatStream;
  /** Answers in OpenAI's shape. */
  readonly completions: ChatCompletions;
}
