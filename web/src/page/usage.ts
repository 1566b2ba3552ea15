// The numbers of tokens and the reason for the end of a result, in OpenAI's terms.
import type { CompletionUsage, FinishReason, TextFinish } from '../openai-types.js';
import type { GenerationResult } from '../types.js';

export const finishOf = ({ end }: GenerationResult): TextFinish =>
  end === 'length' || end === 'context' ? 'length' : 'stop';

/** Returns the reason for the end of an answer with so many calls. */
export const finishOfChat = (result: GenerationResult, calls: number): FinishReason => {
  const finish = finishOf(result);
  return calls > 0 && finish === 'stop' ? 'tool_calls' : finish;
};

/** Adds up the tokens of choices, whose prompt counts once. */
export class Usage {
  #prompt = 0;
  #cached = 0;
  #completion = 0;

  add({ position, reusedTokens, tokens, end }: GenerationResult): this {
    // The token that ends a text is in the sequence, and not among the text's tokens.
    const made = tokens.length + (end === 'eos' ? 1 : 0);
    if (this.#prompt === 0) this.#cached = reusedTokens;
    this.#prompt = position - made;
    this.#completion += made;
    return this;
  }

  get sum(): CompletionUsage {
    return {
      ...{ prompt_tokens: this.#prompt, completion_tokens: this.#completion },
      total_tokens: this.#prompt + this.#completion,
      prompt_tokens_details: { cached_tokens: this.#cached },
    };
  }
}

export const usageOf = (result: GenerationResult): CompletionUsage => new Usage().add(result).sum;
