// The line about an answer: its tokens, their speed, and the reason for its end.

import type { End, Stats } from 'qsf';
import * as format from './format.js';

/** Reasons for the end of an answer that its reader needs. */
const ENDS: Partial<Record<End, string>> = {
  length: 'at the length limit',
  context: 'the context is full',
  cancelled: 'stopped',
};

export function inWords({ generation }: Stats): string {
  if (!generation) return '';
  const { tokens, tokensPerSecond, firstTokenMs, end } = generation;
  return [
    `${tokens.length} tokens`,
    ...(tokensPerSecond === undefined ? [] : [`${format.rate(tokensPerSecond)} tokens/s`]),
    ...(firstTokenMs === undefined ? [] : [`first after ${format.milliseconds(firstTokenMs)}`]),
    ...(end && ENDS[end] ? [ENDS[end]] : []),
  ].join(' · ');
}
