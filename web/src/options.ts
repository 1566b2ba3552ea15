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

/** A value of one of JavaScript's kinds, or undefined when none is given. */
export function checkKind<T>(
  name: string,
  kind: 'boolean' | 'function' | 'object',
  value: T | undefined,
): T | undefined {
  if (value === undefined || (typeof value === kind && value !== null)) return value;
  const wanted = { boolean: 'true or false', function: 'a function', object: 'an object' }[kind];
  throw new QSFError('bad_argument', `${name} is ${shown(value)}; it must be ${wanted}`);
}

/** Throws bad_argument, naming what was probably meant, for a member of `given` that is none of `known`'s or one of `not`. */
export function checkKnown(what: string, given: object, known: object, not: readonly string[] = []): void {
  checkKind(`The argument of ${what}`, 'object', given);
  const names = Object.keys(known).filter((name) => !not.includes(name));
  const stranger = Object.keys(given).find((name) => !names.includes(name));
  if (stranger === undefined) return;
  const near = names.find((name) => plain(name) === plain(stranger)) ?? names.find((name) => isNear(name, stranger));
  const advice = near === undefined ? `known are ${names.sort().join(', ')}` : `did you mean ${near}?`;
  throw new QSFError('bad_argument', `${what} has no option ${JSON.stringify(stranger)}; ${advice}`);
}

/** Of other ways to write a name: max_tokens, max-tokens, MaxTokens. */
const plain = (name: string) => name.replace(/[-_]/g, '').toLowerCase();

/** Whether the names have the same letters but for two: two that changed places, one more, one less, one that is another. */
function isNear(a: string, b: string): boolean {
  const left = [...plain(a)];
  let strange = 0;
  for (const letter of plain(b)) {
    const at = left.indexOf(letter);
    if (at < 0) strange++;
    else left.splice(at, 1);
  }
  return strange + left.length <= 2;
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
