// Options against their limits, in the words that the engine uses too.
import { ABOVE_ZERO } from './boundary.gen.js';
import type { OptionRule, OptionRules } from './boundary.gen.js';
import { QSFError } from './errors.js';

/** Values that may be given. */
export type Given<T> = { [K in keyof T]?: T[K] | undefined };

/** Every option of `rules`: as given, or its default. Throws bad_argument for one outside its limits. */
export function checkOptions<T extends object>(rules: OptionRules<T>, given: Given<T>): T {
  const out: Partial<T> = {};
  for (const name of Object.keys(rules) as (keyof T & string)[])
    out[name] = checkOption(name, rules[name], given[name]);
  return out as T;
}

export function checkOption<T>(name: string, rule: OptionRule<T>, value: T | undefined): T {
  const given = value ?? rule.fallback;
  if (fits(rule, given)) return given;
  throw new QSFError('bad_argument', `${name} is ${shown(given)}; it must be ${words(rule)}`);
}

/** One of a list's names, or undefined when none is given. */
export function checkName<T extends string>(name: string, names: readonly T[], value: T | undefined): T | undefined {
  if (value === undefined || names.includes(value)) return value;
  throw new QSFError('bad_argument', `${name} is ${shown(value)}; it must be one of ${names.join(', ')}`);
}

function fits({ type, least, most }: OptionRule<unknown>, value: unknown): boolean {
  if (type === 'flag') return typeof value === 'boolean';
  if (typeof value !== 'number' || (type !== 'real' && !Number.isInteger(value))) return false;
  return value >= least && value <= most;
}

function words({ type, least, most }: OptionRule<unknown>): string {
  if (type === 'flag') return 'true or false';
  if (least === ABOVE_ZERO) return `above 0 and at most ${most}`;
  return `${type === 'real' ? '' : 'a whole number from '}${least} to ${most}`;
}

/** Text in quotes, so that '1' is not taken for 1. */
function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
