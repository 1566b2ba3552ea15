// The options that hold an answer: which calls it may have, and how long it thinks.
import type { Hold } from '../contract.js';
import { QSFError } from '../errors.js';
import { checkOption, kindOf } from './options.js';
import type { ChatOptions } from '../types.js';

/** The rule of a budget of thoughts, in tokens. */
export const BUDGET = { type: 'i32', fallback: -1, least: -1, most: 0x7fffffff } as const;

/** The names of the options, for checks of objects from callers. */
export const HOLDING = { toolChoice: true, parallelToolCalls: true, reasoningBudget: true } as const;

/** Returns the holds of an answer, or undefined if it has none. Throws bad_argument. */
export function holdOf({ toolChoice, reasoningBudget, tools, responseFormat }: ChatOptions): Hold | undefined {
  const budget = checkOption('reasoningBudget', BUDGET, reasoningBudget);
  const calls = callsOf(toolChoice);
  if (calls !== undefined && (tools ?? []).length === 0)
    throw new QSFError('bad_argument', 'toolChoice is given without tools');
  if (calls !== undefined && responseFormat !== undefined)
    throw new QSFError('bad_argument', 'toolChoice and responseFormat are both given; give one of them');
  return calls === undefined && budget < 0 ? undefined : { thought: budget < 0 ? undefined : budget, calls };
}

function callsOf(choice: ChatOptions['toolChoice']): Hold['calls'] {
  if (choice === undefined) return undefined;
  if (choice === 'auto' || choice === 'required') return { required: choice === 'required', only: '' };
  const name: unknown = (choice as { name?: unknown } | null)?.name;
  if (typeof name === 'string' && name !== '') return { required: true, only: name };
  const given = typeof choice === 'string' ? JSON.stringify(choice) : kindOf(choice);
  throw new QSFError('bad_argument', `toolChoice is ${given}; it must be 'auto', 'required' or { name: … }`);
}
