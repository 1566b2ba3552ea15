// The parts of an answer on the page: text, thoughts and calls, and the message that they make.
import type { AnswerPart, AssistantMessage, ChatResult, ToolCall } from '../answer-types.js';
import type { AnswerPiece } from '../boundary.gen.js';
import type { GenerationResult } from '../types.js';

const ID_LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz';
/** Letters of an id. Some templates refuse ids of other lengths. */
const ID_LENGTH = 9;

/** Collects the parts of one answer. */
export class Answer {
  #content = '';
  #thought = '';
  readonly #calls: ToolCall[] = [];
  #name = '';

  /** Returns parts of the engine in the page's form. */
  add(pieces: readonly AnswerPiece[]): AnswerPart[] {
    return pieces.flatMap(({ kind, text }): AnswerPart[] => {
      switch (kind) {
        case 'text':
          this.#content += text;
          return [{ type: 'text', text }];
        case 'thought':
          this.#thought += text;
          return [{ type: 'thought', text }];
        case 'call':
          this.#name = text;
          return [];
        case 'arguments': {
          const call = { name: this.#name, arguments: JSON.parse(text) as Record<string, unknown> };
          const id = newId();
          this.#calls.push({ id, type: 'function', function: call });
          return [{ type: 'call', id, ...call }];
        }
      }
    });
  }

  /** Returns the result of a generation with the message. */
  finish(ended: GenerationResult): ChatResult {
    const message: AssistantMessage = {
      role: 'assistant',
      content: this.#content,
      ...(this.#thought !== '' && { reasoning_content: this.#thought }),
      ...(this.#calls.length > 0 && { tool_calls: [...this.#calls] }),
    };
    return { ...ended, message };
  }
}

/** Returns the text of a part for the user, or undefined if it has none. */
export const textOf = (part: AnswerPart): string | undefined => (part.type === 'text' ? part.text : undefined);

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_LENGTH));
  return Array.from(bytes, (byte) => ID_LETTERS[byte % ID_LETTERS.length]).join('');
}
