// A link that writes the same story: beginning, seed, budget and options after the address's #.

import { MiB } from 'qsf';
import { modelAddress, withoutUser } from './address.js';
import type { Options } from './options.js';

/** The longest beginning and address in a link, in characters. */
const LONGEST = 4000;

export interface Shared {
  prompt: string;
  /** In bytes. */
  budget: number;
  options: Options;
  /** The address of a model that is not the built-in one. */
  model?: string;
}

const NUMBERS = {
  seed: 'seed',
  temperature: 'temperature',
  maxTokens: 'length',
  topK: 'top-k',
  topP: 'top-p',
} as const;

/** Returns the link, in which no address has a user or a password. */
export function linkTo(page: string, { prompt, budget, options, model }: Shared): string {
  const words = new URLSearchParams({ prompt, budget: String(budget / MiB) });
  for (const [option, name] of Object.entries(NUMBERS)) words.set(name, String(options[option as keyof Options]));
  if (model !== undefined) words.set('model', withoutUser(model));
  const link = new URL(withoutUser(page));
  link.hash = words.toString();
  return link.href;
}

/** The valid settings of a link. */
export interface Link extends Pick<Shared, 'prompt'>, Partial<Pick<Shared, 'budget' | 'model'>> {
  options: Partial<Options>;
}

/** Returns the valid settings of a link; undefined if it has no prompt. */
export function readLink(hash: string): Link | undefined {
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  const prompt = words.get('prompt');
  if (prompt === null) return undefined;
  const number = (name: string) => {
    const value = words.get(name);
    return value === null || value.trim() === '' || !Number.isFinite(Number(value)) ? undefined : Number(value);
  };
  const options: Partial<Options> = {};
  for (const [option, name] of Object.entries(NUMBERS)) {
    const value = number(name);
    if (value !== undefined) options[option as keyof Options] = value;
  }
  const budget = number('budget');
  const model = modelAddress((words.get('model') ?? '').slice(0, LONGEST));
  return {
    prompt: prompt.slice(0, LONGEST),
    options,
    ...(budget !== undefined && budget > 0 && { budget: budget * MiB }),
    ...(model !== undefined && { model }),
  };
}
