// The entry qsf/retrieval: passages of any text, and the nearest vectors as a plain computation in double precision has them.
import { describe, expect, it } from 'vitest';

import { messageWith, nearest, passagesOf } from '../../web/src/retrieval.js';

/** Numbers from 0 to 1 from a seed (xorshift32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A text of words, signs, spaces and letters of two units, some of them without any space. */
function textFrom(seed: number): string {
  const random = randomFrom(seed);
  const parts = [
    'word',
    'a',
    'long-and-longer-word',
    '😀',
    '字字字',
    '。',
    '. ',
    '! ',
    ' ',
    ' ',
    ' ',
    '\n',
    '\n\n',
    '  \n \n',
  ];
  const size = Math.floor(random() * 400);
  return Array.from({ length: size }, () => parts[Math.floor(random() * parts.length)]!).join('');
}

const halves = /^[\udc00-\udfff]|[\ud800-\udbff]$/;

describe('passages', () => {
  it('have all of a text, in order, each within its length and with whole letters', () => {
    for (let seed = 1; seed <= 120; seed++) {
      const text = textFrom(seed * 7919);
      const [length, overlap] = [16 + (seed % 90), seed % 9];
      const passages = passagesOf(text, { length, overlap });
      const seen = new Set<number>();
      let [lastStart, lastEnd] = [-1, 0];
      for (const { start, end, text: part } of passages) {
        expect(part, `seed ${seed}`).toBe(text.slice(start, end));
        expect(part.trim()).toBe(part);
        expect(part.length).toBeGreaterThan(0);
        expect(part.length).toBeLessThanOrEqual(length);
        expect(part).not.toMatch(halves);
        expect(start).toBeGreaterThan(lastStart);
        expect(end).toBeGreaterThan(lastEnd);
        expect(lastEnd - start).toBeLessThanOrEqual(overlap);
        [lastStart, lastEnd] = [start, end];
        for (let i = start; i < end; i++) seen.add(i);
      }
      const left = Array.from(text.split(''), (letter, i) => (seen.has(i) ? '' : letter)).join('');
      expect(left.trim(), `seed ${seed}`).toBe('');
    }
  });

  const texts = (text: string, length: number, overlap = 0) =>
    passagesOf(text, { length, overlap }).map((passage) => passage.text);

  it('end with a paragraph, else a line, a sentence or a word', () => {
    expect(texts('One two three.\n\nFour five. Six', 20)).toEqual(['One two three.', 'Four five. Six']);
    expect(texts('One two three\nfour. five six', 20)).toEqual(['One two three', 'four. five six']);
    expect(texts('One two three. Four five six', 20)).toEqual(['One two three.', 'Four five six']);
    expect(texts('One two three four five six', 20)).toEqual(['One two three four', 'five six']);
    expect(texts('一二三四五六七八九十。一二三四五六七八九十', 16)).toEqual([
      '一二三四五六七八九十。',
      '一二三四五六七八九十',
    ]);
    expect(texts('x'.repeat(40), 16)).toEqual(['x'.repeat(16), 'x'.repeat(16), 'x'.repeat(8)]);
  });

  it('repeat a part that begins with a sentence or a word, and none of a paragraph', () => {
    expect(texts('One two three. Go on. Four five six', 24, 12)).toEqual([
      'One two three. Go on.',
      'Go on. Four five six',
    ]);
    expect(texts('aa bb cc dd ee ff gg hh', 16, 6)).toEqual(['aa bb cc dd ee', 'dd ee ff gg hh']);
    expect(texts('One two three.\n\nFour five six.', 16, 8)).toEqual(['One two three.', 'Four five six.']);
  });

  it('are none of a text without letters', () => {
    expect(passagesOf('')).toEqual([]);
    expect(passagesOf(' \n\n '.repeat(2000))).toEqual([]);
  });

  // Counted are the letters that patterns are given, because the time of a pattern is bounded by them.
  it('take as many steps for each letter of a long text as of a short one', () => {
    const { test } = RegExp.prototype;
    const { matchAll, slice } = String.prototype;
    const stepsOf = (text: string): number => {
      let steps = 0;
      RegExp.prototype.test = function (given) {
        steps += given.length;
        return test.call(this, given);
      };
      String.prototype.matchAll = function (this: string, pattern) {
        steps += this.length;
        return matchAll.call(this, pattern);
      } as typeof matchAll;
      String.prototype.slice = function (...range) {
        const part = slice.apply(this, range);
        steps += part.length;
        return part;
      };
      try {
        passagesOf(text);
        return steps;
      } finally {
        RegExp.prototype.test = test;
        Object.assign(String.prototype, { matchAll, slice });
      }
    };
    for (const text of [
      (size: number) => 'word '.repeat(size / 5),
      (size: number) => 'x'.repeat(size),
      (size: number) => `x${' '.repeat(size)}x`,
      (size: number) => '\n \n'.repeat(size / 3),
      (size: number) => 'a.) '.repeat(size / 4),
    ]) {
      const [few, many] = [stepsOf(text(2e4)), stepsOf(text(2e5))];
      expect(few).toBeGreaterThan(2e4 / 2);
      expect(many).toBeLessThan(10.5 * few);
    }
  });
});

describe('the nearest vectors', () => {
  /** The cosine as its definition has it, of vectors that are divided by their lengths. */
  function cosine(a: Float32Array, b: Float32Array): number {
    const unit = (v: Float32Array) => {
      const doubles = Array.from(v);
      const length = Math.hypot(...doubles);
      return doubles.map((x) => (length === 0 ? 0 : x / length));
    };
    const [x, y] = [unit(a), unit(b)];
    return x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  }

  it('are those of a sort of all cosines in double precision', () => {
    const random = randomFrom(2463534242);
    const vector = (dim: number) =>
      Float32Array.from({ length: dim }, () => (random() - 0.5) * 10 ** (random() * 6 - 3));
    for (const [dim, count, most] of [
      [1, 5, 3],
      [3, 40, 7],
      [384, 200, 10],
      [16, 30, 100],
      [8, 0, 5],
      [8, 9, 0],
    ] as const) {
      const query = vector(dim);
      const vectors = Array.from({ length: count }, () => vector(dim));
      const all = vectors.map((other, index) => ({ index, score: cosine(query, other) }));
      const expected = all.sort((a, b) => b.score - a.score).slice(0, most);
      const found = nearest(query, vectors, most);
      expect(found).toHaveLength(expected.length);
      for (const [i, { score }] of found.entries()) expect(score).toBeCloseTo(expected[i]!.score, 12);
      // In one dimension all cosines are 1 or -1.
      if (dim > 1) expect(found.map(({ index }) => index)).toEqual(expected.map(({ index }) => index));
    }
  });

  it('are in the order of the list if they are equal, and a vector of zeros has 0', () => {
    const found = nearest(
      [1, 0],
      [
        [2, 0],
        [0, 0],
        [1, 0],
        [-1, 0],
        [3, 0],
      ],
      4,
    );
    expect(found).toEqual([0, 2, 4, 1].map((index) => ({ index, score: index === 1 ? 0 : 1 })));
    expect(nearest([0, 0], [[1, 1]])).toEqual([{ index: 0, score: 0 }]);
  });

  it.each<[string, () => unknown, string]>([
    ['another length', () => nearest([1, 2], [[1, 2], [1]]), 'vector 1 has 1 values, and the query has 2'],
    ['no number', () => nearest([1], [[NaN]]), 'vector 0 has a value that is not a finite number'],
    ['no number in the query', () => nearest([Infinity], [[1]]), 'the query has a value that is not a finite number'],
    ['no vector', () => nearest(5 as never, []), 'the query is 5; it must be a vector'],
    ['an empty query', () => nearest([], []), 'the query is an empty list; it must be a vector'],
    ['half a number of results', () => nearest([1], [], 0.5), 'most is 0.5; it must be a whole number'],
    ['a short length', () => passagesOf('a', { length: 15 }), 'length is 15; it must be 16 or more'],
    [
      'a wide overlap',
      () => passagesOf('a', { length: 20, overlap: 11 }),
      'overlap is 11; it must be from 0 to half of length, 10',
    ],
    [
      'a passage without a name',
      () => messageWith('a', [{ text: 'b' } as never]),
      'passage 0 must have a name and a text',
    ],
  ])('are refused for %s', (_, call, sentence) => {
    expect(call).toThrow(expect.objectContaining({ name: 'QSFError', code: 'bad_argument', message: sentence }));
  });
});

it('a message has the passages with numbers and names, then the question', () => {
  const message = messageWith('Why?', [
    { name: 'a.txt', text: 'One.' },
    { name: 'b.md', text: 'Two.' },
  ]);
  expect(message).toMatch(/^Answer the question .*\n\n\[1\] a\.txt\nOne\.\n\n\[2\] b\.md\nTwo\.\n\nQuestion: Why\?$/);
});
