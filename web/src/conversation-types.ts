// The public types of conversations that are kept.
import type { ChatMessage, ChatOptions } from './types.js';

/** The beginning of a conversation, and the options of its answers. */
export interface ConversationOptions extends Omit<ChatOptions, 'signal'> {
  /** The first message, of the role `system`. Default: none, or the first of `messages`. */
  system?: string | undefined;
  /** Messages that were already exchanged. Default: none. */
  messages?: readonly ChatMessage[] | undefined;
  /**
   * The effect of a context that has no room for the conversation and an answer. `end`: the answer rejects with
   * context_full. `drop`: the oldest turns are removed. Default: `end`.
   */
  whenFull?: 'end' | 'drop' | undefined;
  /** Gets the messages that were removed for an answer, after the answer. */
  onDrop?: ((messages: readonly ChatMessage[]) => void) | undefined;
}

/** A saved conversation, which JSON can hold. */
export interface ConversationData {
  /** The version of this form. */
  version: 1;
  messages: readonly ChatMessage[];
  /** Messages that were removed because the context was full. */
  dropped?: readonly ChatMessage[];
}

/** Tokens of a conversation in the context. */
export interface TokenCount {
  /** Tokens of the rendered conversation. A begin token that the template does not write is not counted. */
  tokens: number;
  /** Tokens for which the context has room after them. */
  left: number;
}
