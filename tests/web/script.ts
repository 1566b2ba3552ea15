// The script of a fake session's generation.
import type { AnswerPiece, End } from '../../web/src/boundary.gen.js';
import type { ErrorName } from '../../web/src/errors.js';

export interface Failure {
  code: ErrorName;
  sentence: string;
}

/** The texts and parts of the n-th token of a generation. */
export interface Script {
  piece?: (n: number) => string;
  /** The text that the n-th token stands for, if its piece is another. */
  text?: (n: number) => string | Uint8Array;
  /** The parts of an answer that the n-th token completes, its piece by default, and those that its end gives. */
  parts?: (n: number) => AnswerPiece[];
  lastParts?: AnswerPiece[];
  /** Steps of mere work before each token. */
  work?: number;
  /** Tokens of the prompt that are computed after the n-th of the steps before the first token. */
  fed?: (n: number) => number;
  /** A segment is read before these tokens. */
  reads?: (n: number) => boolean;
  /** The generation ends so after so many tokens, unless `maxTokens` comes first. */
  end?: { after: number; why: End };
  /** The engine fails before this token. */
  fails?: { before: number; error: Failure };
}
