// A link that writes the same story: beginning, seed, budget and options behind the address's #.

import { MiB } from 'qsf';
import type { Options } from './options.js';

/** Longest beginning and address that a link may hold, in characters. */
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

export function linkTo(page: string, { prompt, budget, options, model }: Shared): string {
  const words = new URLSearchParams({ prompt, budget: String(budget / MiB) });
  for (const [option, name] of Object.entries(NUMBERS)) words.set(name, String(options[option as keyof Options]));
  if (model !== undefined) words.set('model', model);
  const link = new URL(page);
  link.hash = words.toString();
  return link.href;
}

/** What a link says, as far as it makes sense; undefined where it says nothing. */
export function readLink(hash: string): (Partial<Omit<Shared, 'options'>> & { options: Partial<Options> }) | undefined {
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
  const model = words.get('model')?.slice(0, LONGEST);
  return {
    prompt: prompt.slice(0, LONGEST),
    options,
    ...(budget !== undefined && budget > 0 && { budget: budget * MiB }),
    ...(model !== undefined && /^https?:\/\//.test(model) && { model }),
  };
}
