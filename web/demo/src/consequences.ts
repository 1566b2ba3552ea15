// The consequences of a budget, in sentences: weights that stay, weights that stream, the bits of keys and values, and the
// expected speed.

import type { Expected, PlanSummary } from 'qsf';
import * as format from './format.js';

/** Returns the bits of a type of keys and values, such as "16 bits", or "8 and 4 bits". */
function bitsOf(kv: PlanSummary['kv']): string {
  const [keys, values] = kv.match(/\d+/g) ?? [];
  return values === undefined ? `${keys ?? ''} bits` : `${keys ?? ''} and ${values} bits`;
}

/** Returns the consequences of a plan, which are known before they cost. */
export function consequences(plan: PlanSummary, expected?: Expected): string {
  const { weightBytes, pinnedBytes, tokenBytes, kv } = plan;
  return [
    tokenBytes === 0
      ? 'All of the model stays in memory.'
      : `${format.bytes(pinnedBytes)} of the model’s ${format.bytes(weightBytes)} stay in memory, and ` +
        `${format.bytes(tokenBytes)} are read again for each token.`,
    `Keys and values have ${bitsOf(kv)}.`,
    ...(expected === undefined ? [] : [`About ${format.rate(expected.tokensPerSecond)} tokens/s.`]),
  ].join(' ');
}
