import { describe, expect, it } from 'vitest';

import { COMPLETE_LINE, headLine, parseJournal, rangeLine } from '../../web/src/sources/journal.js';

const identity = { url: 'https://example.org/größe.qsf', validator: '"a\\"b"', size: 1000 };
const bytes = (text: string) => new TextEncoder().encode(text);

describe('journal', () => {
  it('gives back what was written', () => {
    const text =
      headLine(identity) + rangeLine('have', 0, 128) + rangeLine('have', 500, 500) + rangeLine('drop', 600, 10);
    const journal = parseJournal(bytes(text))!;
    expect(journal.identity).toEqual(identity);
    expect([...journal.verified]).toEqual([
      [0, 128],
      [500, 600],
      [610, 1000],
    ]);
    expect(journal.complete).toBe(false);
    expect(journal.length).toBe(bytes(text).length);
  });

  it('has the size at the address and the type of a made file', () => {
    const made = { ...identity, of: 2000, quantType: 'q4_0' };
    expect(parseJournal(bytes(headLine(made)))!.identity).toEqual(made);
    expect(parseJournal(bytes('{"qsf":1,"url":"u","validator":null,"size":1,"quantType":4}\n'))).toBeUndefined();
  });

  it('ends at the last whole line, wherever it was torn', () => {
    const lines = [headLine(identity), rangeLine('have', 0, 10), rangeLine('have', 10, 15), COMPLETE_LINE];
    const text = bytes(lines.join(''));
    const ends = lines.map((_, i) => bytes(lines.slice(0, i + 1).join('')).length);
    for (let length = 0; length <= text.length; length++) {
      const whole = ends.filter((end) => end <= length).length;
      const journal = parseJournal(text.subarray(0, length));
      if (whole === 0) {
        expect(journal).toBeUndefined();
        continue;
      }
      expect(journal!.length).toBe(ends[whole - 1]);
      expect(journal!.verified.total).toBe([0, 0, 10, 25, 25][whole]);
      expect(journal!.complete).toBe(whole === 4);
    }
  });

  it('is not complete any more once something was dropped', () => {
    const text = headLine(identity) + rangeLine('have', 0, 1000) + COMPLETE_LINE + rangeLine('drop', 5, 1);
    expect(parseJournal(bytes(text))!.complete).toBe(false);
  });

  it.each([
    ['an offset outside the file', rangeLine('have', 990, 11)],
    ['a size outside the file', rangeLine('have', 0, 1001)],
    ['a number with a sign', 'have -1 5\n'],
    ['zeros', '\0\0\0\0\n'],
    ['words', 'hello\n'],
  ])('stops at %s', (_, line) => {
    const text = headLine(identity) + rangeLine('have', 0, 10) + line + rangeLine('have', 20, 10);
    expect(parseJournal(bytes(text))!.verified.total).toBe(10);
  });

  it.each([
    ['nothing', ''],
    ['another version', '{"qsf":2,"url":"u","validator":null,"size":1}\n'],
    ['no JSON', 'qsf\n'],
    ['a size that is none', '{"qsf":1,"url":"u","validator":null,"size":-1}\n'],
    ['no address', '{"qsf":1,"validator":null,"size":1}\n'],
    ['null', 'null\n'],
  ])('is not read when its head is %s', (_, text) => {
    expect(parseJournal(bytes(text))).toBeUndefined();
  });
});
