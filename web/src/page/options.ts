// Checks of options against their limits, with the engine's own wording.
import { ABOVE_ZERO } from '../boundary.gen.js';
import type { OptionRule, OptionRules } from '../boundary.gen.js';
import { QSFError } from '../errors.js';
import type { Given } from '../types.js';

/**
 * Returns every option of `rules`: the given value, or the default. Throws bad_argument for a value outside its limits.
 */
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

/** Returns one of a list's names, or undefined if none is given. Throws bad_argument. */
export function checkName<T extends string>(name: string, names: readonly T[], value: T | undefined): T | undefined {
  return value === undefined ? undefined : oneOf(name, names, value);
}

/** Returns one of a list's names. Throws bad_argument. */
export function oneOf<T extends string>(name: string, names: readonly T[], value: T): T {
  if (names.includes(value)) return value;
  throw new QSFError('bad_argument', `${name} is ${shown(value)}; it must be one of ${names.join(', ')}`);
}

/** Returns a value of one of JavaScript's kinds, or undefined if none is given. Throws bad_argument. */
export function checkKind<T>(
  name: string,
  kind: 'boolean' | 'function' | 'object' | 'string',
  value: T | undefined,
): T | undefined {
  if (value === undefined || (typeof value === kind && value !== null)) return value;
  const wanted = { boolean: 'true or false', function: 'a function', object: 'an object', string: 'a text' }[kind];
  throw new QSFError('bad_argument', `${name} is ${shown(value)}; it must be ${wanted}`);
}

/**
 * Throws bad_argument for a member of `given` that is not a member of `known`, or is in `not`. The sentence names the
 * option that was probably meant.
 */
export function checkKnown(what: string, given: object, known: object, not: readonly string[] = []): void {
  if (given === undefined) throw new QSFError('bad_argument', `${what} must be given an object`);
  checkKind(`the argument of ${what}`, 'object', given);
  const names = Object.keys(known).filter((name) => !not.includes(name));
  const stranger = Object.keys(given).find((name) => !names.includes(name));
  if (stranger === undefined) return;
  const near = names.find((name) => plain(name) === plain(stranger)) ?? names.find((name) => isNear(name, stranger));
  const advice = near === undefined ? `known are ${names.sort().join(', ')}` : `did you mean ${near}?`;
  throw new QSFError('bad_argument', `${what} has no option ${JSON.stringify(stranger)}; ${advice}`);
}

/** Returns one form for all spellings of a name: max_tokens, max-tokens, MaxTokens. */
const plain = (name: string) => name.replace(/[-_]/g, '').toLowerCase();

/**
 * Whether the names have the same letters except two: two that changed places, one more, one less, or one that differs.
 */
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

/** Returns a value as text, and text in quotes, so that '1' does not look like 1. Objects and functions are named. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  const hasNoText = typeof value === 'function' || (typeof value === 'object' && value !== null);
  return hasNoText ? kindOf(value) : String(value);
}

/** Returns the kind of a value, because not every value can be shown. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
