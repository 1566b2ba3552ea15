// The parts of an answer on the page: text, thoughts and calls, and the message that they make.
import type { AnswerPart, AssistantMessage, ChatResult, TextPart, ToolCall } from '../answer-types.js';
import type { AnswerPiece } from '../boundary.gen.js';
import type { GenerationResult } from '../types.js';

const ID_LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz';
/** Letters of an id. Some templates refuse ids of other lengths. */
const ID_LENGTH = 9;

/** Collects the parts of one answer. */
export class Answer {
  readonly #parts: AnswerPart[] = [];
  #name = '';

  /** Returns parts of the engine in the page's form. */
  add(pieces: readonly AnswerPiece[]): AnswerPart[] {
    const parts = pieces.flatMap(({ kind, text }): AnswerPart[] => {
      switch (kind) {
        case 'text':
        case 'thought':
          return [{ type: kind, text }];
        case 'call':
          this.#name = text;
          return [];
        case 'arguments':
          return [
            { type: 'call', id: newId(), name: this.#name, arguments: JSON.parse(text) as Record<string, unknown> },
          ];
      }
    });
    this.#parts.push(...parts);
    return parts;
  }

  /** Returns the result of a generation with the message. */
  finish(ended: GenerationResult): ChatResult {
    return { ...ended, message: messageOf(this.#parts) };
  }
}

/** Returns the message that the parts of an answer make. */
export function messageOf(parts: readonly AnswerPart[]): AssistantMessage {
  const joined = (type: TextPart['type']) => parts.map((part) => (part.type === type ? part.text : '')).join('');
  const thought = joined('thought');
  const calls = parts.flatMap((part): ToolCall[] => {
    if (part.type !== 'call') return [];
    return [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.arguments } }];
  });
  return {
    role: 'assistant',
    content: joined('text'),
    ...(thought !== '' && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** Returns the text of a part for the user, or undefined if it has none. */
export const textOf = (part: AnswerPart): string | undefined => (part.type === 'text' ? part.text : undefined);

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_LENGTH));
  return Array.from(bytes, (byte) => ID_LETTERS[byte % ID_LETTERS.length]).join('');
}
