// The room for tokens: whether there is some, and whether more memory makes more of it.

import type { Stats } from 'qsf';

/** Whether the engine names a larger budget among the changes that make room for more tokens. */
export const budgetHelps = ({ moreContext }: Stats['plan']): boolean => moreContext.includes('a larger budget');

/** Whether a generation can continue: the last token, which is not fed yet, and one more have room. */
export const hasRoom = ({ position, plan }: Stats): boolean => position + 1 < plan.maxSeqLen;

/** Returns the fault of a beginning of `length` tokens; undefined if a token has room after it. */
export function tooLong(length: number, plan: Stats['plan']): string | undefined {
  if (length < plan.maxSeqLen) return undefined;
  const more = budgetHelps(plan)
    ? 'Shorten it, or give the model more memory.'
    : 'Shorten it: more memory does not help.';
  return `It has ${length} tokens, and there is room for ${plan.maxSeqLen} of them. ${more}`;
}
