// The public types of tokens with their log-probabilities.
/** A token with the natural logarithm of the probability that the model gives it, before biases and samplers. */
export interface TokenProbability {
  id: number;
  /** The token's text, in which bytes that are no whole character are U+FFFD. */
  text: string;
  /** Its bytes in UTF-8, which may be a part of a character. */
  bytes: number[];
  logprob: number;
}

/** A generated token, with the likeliest tokens at its place in their order, as many as `topLogprobs`. */
export interface GeneratedToken extends TokenProbability {
  top: TokenProbability[];
}
