// The entry `qsf/retrieval`: passages of texts, those that are nearest to a question, and a message with them. It computes
// no embeddings and keeps nothing: `llm.embed()` does the first, and the application owns its texts and vectors.
import { QSFError } from './errors.js';

/** A part of a text: `text` is the text's slice from `start` to `end`, in UTF-16 units. */
export interface Passage {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Lengths in UTF-16 units. */
export interface PassageOptions {
  /** The most of a passage, at least 16. Default 800, about 200 tokens of English. */
  length?: number | undefined;
  /**
   * The most of a passage that the next one repeats, so that a sentence is whole in one of them. At most half of `length`.
   * Default an eighth of `length`.
   */
  overlap?: number | undefined;
}

/** A vector's index in a list, and the cosine of its angle to a query's: from -1 to 1, larger for a nearer one. */
export interface Near {
  index: number;
  score: number;
}

const LENGTH = 800;
const LEAST_LENGTH = 16;

/** Ends of a text's parts, the best ones first: paragraphs, lines, sentences, words. Each match ends with the space. */
const ENDS: readonly RegExp[] = [/\n[^\S\n]*\n\s*/g, /\n\s*/g, /[.!?…]["'”’»)\]]*\s+|[。！？]\s*/g, /\s+/g];
/** The index of paragraphs in ENDS. No passage repeats a part of the paragraph before it. */
const PARAGRAPH = 0;
/** The beginnings at which a repeated part may start: those of sentences, else of words. */
const BEGINNINGS = ENDS.slice(1);

/**
 * Returns the passages of a text, in order. Each ends with a paragraph, a line, a sentence or a word, the first of these that
 * is in its second half. Together they have everything except white space. Throws bad_argument.
 */
export function passagesOf(text: string, options: PassageOptions = {}): Passage[] {
  check(typeof text === 'string', `the text is ${kindOf(text)}; it must be a string`);
  check(typeof options === 'object' && options !== null, `the options are ${kindOf(options)}; they must be an object`);
  const { length = LENGTH, overlap = Math.floor(length / 8) } = options;
  check(Number.isInteger(length) && length >= LEAST_LENGTH, `length is ${kindOf(length)}; it must be 16 or more`);
  const isShort = Number.isInteger(overlap) && overlap >= 0 && overlap <= length / 2;
  check(isShort, `overlap is ${kindOf(overlap)}; it must be from 0 to half of length, ${length / 2}`);

  const passages: Passage[] = [];
  for (let start = 0; start < text.length;) {
    const { end, kind } = endAfter(text, start, length);
    const passage = trimmed(text, start, end);
    if (passage.text !== '') passages.push(passage);
    start = end === text.length || kind === PARAGRAPH ? end : beginningBefore(text, end, overlap);
  }
  return passages;
}

/**
 * Returns the vectors with the largest cosines to a query's, at most `most` of them, the best one first and equal ones by
 * their index. A vector of zeros has the score 0. Throws bad_argument for vectors of another length or without numbers.
 */
export function nearest(query: ArrayLike<number>, vectors: readonly ArrayLike<number>[], most = 10): Near[] {
  check(isVector(query), `the query is ${kindOf(query)}; it must be a vector`);
  check(Array.isArray(vectors), `the vectors are ${kindOf(vectors)}; they must be a list of vectors`);
  check(Number.isInteger(most) && most >= 0, `most is ${kindOf(most)}; it must be a whole number`);
  const size = Math.sqrt(product(query, query));
  check(Number.isFinite(size), 'the query has a value that is not a finite number');
  const best: Near[] = [];
  for (const [index, vector] of vectors.entries()) {
    check(isVector(vector), `vector ${index} is ${kindOf(vector)}; it must be a list of numbers`);
    const { length } = vector;
    check(length === query.length, `vector ${index} has ${length} values, and the query has ${query.length}`);
    const sizes = size * Math.sqrt(product(vector, vector));
    const score = sizes === 0 ? 0 : product(query, vector) / sizes;
    check(Number.isFinite(score), `vector ${index} has a value that is not a finite number`);
    if (best.length >= most && !(score > (best.at(-1)?.score ?? Infinity))) continue;
    const place = best.findIndex((other) => score > other.score);
    best.splice(place < 0 ? best.length : place, 0, { index, score });
    if (best.length > most) best.pop();
  }
  return best;
}

/**
 * Returns a message that asks a question about passages, which it numbers from 1 with their names. The passages are part of
 * the prompt, so a model may follow instructions in them. Throws bad_argument.
 */
export function messageWith(question: string, passages: readonly { name: string; text: string }[]): string {
  check(typeof question === 'string', `the question is ${kindOf(question)}; it must be a string`);
  check(Array.isArray(passages), `the passages are ${kindOf(passages)}; they must be a list`);
  const parts = passages.map((passage, i) => {
    const { name, text } = (passage ?? {}) as Partial<{ name: string; text: string }>;
    check(typeof name === 'string' && typeof text === 'string', `passage ${i} must have a name and a text`);
    return `[${i + 1}] ${name!}\n${text!}`;
  });
  const task =
    'Answer the question from these passages. After each claim, write the number of its passage, such as [1]. ' +
    'If the passages do not have the answer, say so.';
  return [task, ...parts, `Question: ${question}`].join('\n\n');
}

/** Returns the end of the passage that starts at `start`, after its last space, and the kind of the end in ENDS. */
function endAfter(text: string, start: number, length: number): { end: number; kind: number } {
  if (text.length - start <= length) return { end: text.length, kind: ENDS.length };
  // White space at the limit belongs to the end before it, however much there is.
  const half = start + Math.ceil(length / 2);
  for (const [kind, pattern] of ENDS.entries()) {
    const last = lastEnd(text, pattern, half, start + length);
    if (last !== undefined) return { end: last, kind };
  }
  return { end: wholeLetter(text, start + length), kind: ENDS.length };
}

/** Returns the end of the last match that begins from `from` to `to`; undefined if there is none. */
function lastEnd(text: string, pattern: RegExp, from: number, to: number): number | undefined {
  let end: number | undefined;
  // A letter more, because a match at the limit begins with the letter after the passage or is its last sign.
  const part = text.slice(from, to + 1);
  for (const found of part.matchAll(pattern)) {
    const sign = found[0].trimEnd().length;
    if (found.index + sign <= to - from) end = from + found.index + found[0].length;
  }
  if (end === undefined) return undefined;
  while (end < text.length && /\s/.test(text[end]!)) end++;
  return end;
}

/** Returns where a passage begins that repeats at most `overlap` of the one that ends at `end`. */
function beginningBefore(text: string, end: number, overlap: number): number {
  const from = end - overlap;
  // The end of the sentence before `from` is in the letters before it.
  const first = Math.max(0, from - 4);
  const part = text.slice(first, end);
  for (const pattern of BEGINNINGS) {
    for (const found of part.matchAll(pattern)) {
      const at = first + found.index + found[0].length;
      if (at >= from && at < end) return at;
    }
  }
  return end;
}

/** Returns a position that divides no surrogate pair: the one before it, if it would. */
function wholeLetter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

function trimmed(text: string, start: number, end: number): Passage {
  while (start < end && /\s/.test(text[start]!)) start++;
  while (start < end && /\s/.test(text[end - 1]!)) end--;
  return { start, end, text: text.slice(start, end) };
}

/** Returns the sum of products in double precision. */
function product(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

const isVector = (value: unknown): boolean =>
  (Array.isArray(value) || ArrayBuffer.isView(value)) && (value as ArrayLike<number>).length > 0;

/** Returns a number as text, and the kind of any other value. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (value === null || ['number', 'undefined', 'boolean'].includes(typeof value)) return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function check(isRight: boolean, sentence: string): void {
  if (!isRight) throw new QSFError('bad_argument', sentence);
}
