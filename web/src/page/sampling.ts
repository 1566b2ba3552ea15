// Checks the lists of sampling and makes the worker's request of them.
import { samplerKinds } from '../boundary.gen.js';
import type { SamplingLists } from '../contract.js';
import { QSFError } from '../errors.js';
import { checkKind, oneOf, shown } from './options.js';
import type { GenerateOptions } from '../types.js';

const MOST_BREAKERS = 16;
const MOST_ID = 0xffffffff;
const MOST_BIAS = 3.4e38;

export const LISTS = { logitBias: true, samplers: true, drySequenceBreakers: true };

/** Returns the lists of the options, or undefined if none is given. Throws bad_argument. */
export function samplingLists(options: GenerateOptions): SamplingLists | undefined {
  const { logitBias, samplers, drySequenceBreakers } = options;
  if (logitBias === undefined && samplers === undefined && drySequenceBreakers === undefined) return undefined;
  return {
    biases: biasesOf('logitBias', logitBias ?? {}),
    samplers: listOf('samplers', samplers)?.map((name) => oneOf('a name in samplers', samplerKinds, name)),
    breakers: listOf('drySequenceBreakers', drySequenceBreakers)?.map(breaker),
  };
}

/** Returns the biases of an option, each with its token. Throws bad_argument, with the option's name. */
export function biasesOf(option: string, given: Readonly<Record<number, number>>): [number, number][] {
  checkKind(option, 'object', given);
  const isList = Symbol.iterator in given;
  if (!isList) return Object.entries(given).map((bias) => checked(option, bias));
  throw new QSFError('bad_argument', `${option} is a list or a Map; it must be an object with token ids as names`);
}

function checked(option: string, [name, value]: [string, number]): [number, number] {
  const id = Number(name);
  const isToken = /^\d+$/.test(name) && id <= MOST_ID;
  const isBias = typeof value === 'number' && (Math.abs(value) <= MOST_BIAS || value === -Infinity);
  if (isToken && isBias) return [id, value];
  throw new QSFError(
    'bad_argument',
    `${option} has ${JSON.stringify(name)}: ${shown(value)}; it must have a number or -Infinity for each token id`,
  );
}

function listOf<T>(name: string, list: readonly T[] | undefined): readonly T[] | undefined {
  if (list === undefined || Array.isArray(list)) return list;
  throw new QSFError('bad_argument', `${name} is ${shown(list)}; it must be a list`);
}

function breaker(text: string, _: number, all: readonly string[]): string {
  if (typeof text === 'string' && text !== '' && !text.includes('\0') && all.length <= MOST_BREAKERS) return text;
  throw new QSFError(
    'bad_argument',
    `drySequenceBreakers is [${all.map(shown).join(',')}]; it must be a list of at most ${MOST_BREAKERS} texts, none empty`,
  );
}
