// The progress of an opening as a line of text.

import type { Progress } from 'qsf';
import * as format from './format.js';

/** Returns the progress as a line of text. */
export function inWords(title: string, progress?: Progress): string {
  if (progress === undefined || progress.total === 0) return `Asking for ${title} …`;
  const { phase, loaded, total, rate, secondsLeft, retry, expected } = progress;
  if (retry) {
    const seconds = Math.ceil(retry.seconds);
    return `${title}: the server does not answer. Try ${retry.attempt} of ${retry.tries} in ${seconds} s.`;
  }
  if (phase !== 'download') return `Opening ${title}, ${format.fileSize(total)} …`;
  return [
    `${title}: ${format.partOf(loaded, total)}`,
    ...(rate === undefined ? [] : [`${format.fileSize(rate)}/s`]),
    ...(secondsLeft === undefined ? [] : [`${format.duration(secondsLeft)} left`]),
    ...(expected === undefined ? [] : [`about ${format.rate(expected.tokensPerSecond)} tokens/s`]),
  ].join(' · ');
}
