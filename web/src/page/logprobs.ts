// The log-probabilities of a result in OpenAI's shapes.
import type * as OpenAI from '../openai-types.js';
import type { GeneratedToken, TokenProbability } from '../token-types.js';
import type { GenerationResult } from '../types.js';

/** The least value in OpenAI's interface, since JSON has no infinity. */
const LEAST = -9999;
const finite = (logprob: number) => Math.max(logprob, LEAST);

/** Returns those of an answer, or null if they were not asked for. */
export function chatLogprobs({ logprobs }: GenerationResult): OpenAI.ChatLogprobs | null {
  if (!logprobs) return null;
  return { content: logprobs.map((token) => ({ ...one(token), top_logprobs: token.top.map(one) })), refusal: null };
}

const one = ({ text, logprob, bytes }: TokenProbability): OpenAI.TokenLogprob => ({
  token: text,
  logprob: finite(logprob),
  bytes,
});

/** Returns those of a continued text, or null. */
export function textLogprobs({ logprobs }: GenerationResult): OpenAI.TextLogprobs | null {
  if (!logprobs) return null;
  const byText = ({ top }: GeneratedToken) =>
    Object.fromEntries(top.map(({ text, logprob }) => [text, finite(logprob)]));
  let offset = 0;
  return {
    tokens: logprobs.map(({ text }) => text),
    token_logprobs: logprobs.map(({ logprob }) => finite(logprob)),
    ...(logprobs.some(({ top }) => top.length > 0) && { top_logprobs: logprobs.map(byText) }),
    text_offset: logprobs.map(({ text }) => {
      const at = offset;
      offset += text.length;
      return at;
    }),
  };
}
