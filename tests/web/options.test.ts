import { describe, expect, it } from 'vitest';

import { generated } from '../../scripts/gen-boundary.mjs';
import { listText } from '../../scripts/lib/generated.mjs';
import {
  ABOVE_ZERO,
  ends,
  kvTypes,
  openOptions,
  promptOptions,
  regionNames,
  regions,
  samplerKinds,
  samplerOptions,
  steps,
} from '../../web/src/boundary.gen.js';
import { checkName, checkOption, checkOptions } from '../../web/src/page/options.js';
import { samplingLists } from '../../web/src/page/sampling.js';
import type { GenerateOptions } from '../../web/src/types.js';

const list = listText('include/qsf/base/boundary.def');
const rows = (macro: string) => [...list.matchAll(new RegExp(`^${macro}\\((.*)\\)$`, 'gm'))].map(([, row = '']) => row);
const names = (macro: string) => rows(macro).map((row) => row.split(',')[0]);

/** An interface among the declarations. */
const declaration = (type: string) =>
  new RegExp(`^export interface ${type} \\{\\n(?:.|\\n)*?^\\}$`, 'm').exec(
    generated(list)['web/src/session.gen.ts']!,
  )?.[0] ?? '';

const refused = (sentence: string) => expect.objectContaining({ code: 'bad_argument', message: sentence }) as Error;

describe('what is made from boundary.def', () => {
  it("has the engine's numbers", () => {
    expect(steps).toEqual(names('QSF_STEP'));
    expect(ends).toEqual(names('QSF_END'));
    expect(regions).toEqual(names('QSF_REGION'));
    expect(samplerKinds).toEqual(names('QSF_SAMPLER'));
    expect(kvTypes).toEqual(rows('QSF_KV_TYPE').map((row) => /"(\w+)"/.exec(row)?.[1]));
    expect(Object.keys(regionNames)).toEqual(regions);
  });

  it('has every option with its default and limits', () => {
    for (const [rules, macro] of [
      [openOptions, 'QSF_OPEN_OPTION'],
      [samplerOptions, 'QSF_SAMPLER_OPTION'],
      [promptOptions, 'QSF_PROMPT_OPTION'],
    ] as const) {
      expect(Object.keys(rules)).toEqual(rows(macro).map((row) => row.split(', ')[2]));
    }
    expect(openOptions.maxSeqLen).toEqual({ type: 'u32', fallback: 0, least: 0, most: 16_777_216 });
    expect(openOptions.sequences).toEqual({ type: 'u32', fallback: 1, least: 1, most: 64 });
    expect(samplerOptions.temperature).toEqual({ type: 'real', fallback: 0.7, least: 0, most: 3.4e38 });
    expect(samplerOptions.topP).toEqual({ type: 'real', fallback: 0.9, least: ABOVE_ZERO, most: 1 });
    expect(samplerOptions.seed).toEqual({ type: 'u64', fallback: 0, least: 0, most: Number.MAX_SAFE_INTEGER });
    expect(promptOptions.addBos).toEqual({ type: 'flag', fallback: true, least: 0, most: 1 });
  });

  it.each([
    ['SessionStats', 'QSF_STAT'],
    ['SequenceStats', 'QSF_SEQUENCE_STAT'],
    ['ReadRequest', 'QSF_READ_FIELD'],
    ['Segment', 'QSF_SEGMENT_FIELD'],
    ['RegionBytes', 'QSF_REGION_FIELD'],
    ['KernelCount', 'QSF_KERNEL_FIELD'],
    ['LocalTime', 'QSF_TIME_FIELD'],
    ['Failure', 'QSF_FAILURE_FIELD'],
  ])('declares %s with every field of the list', (type, macro) => {
    const fields = [...declaration(type).matchAll(/^ {2}(\w+): [\w]+;$/gm)].map(([, name]) => name);
    expect(fields).toEqual(rows(macro).map((row) => row.split(', ')[2]));
  });

  it('declares the calls of a session with their arguments and results', () => {
    const calls = [...declaration('Session').matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name);
    expect(calls).toEqual(rows('QSF_CALL').map((row) => row.split(', ')[3]));
    expect(declaration('Session')).toContain('\n  rewind(n: number, sequence: number): Failure | undefined;\n');
    expect(declaration('Session')).toContain('\n  nextRequest(): ReadRequest | undefined;\n');
  });

  it.each([
    ['QSF_OPEN_OPTION(u32, a, a, 0, 0, 1)', 'not understood as a row'],
    ['QSF_NONSENSE(a, "b")', 'an unknown macro'],
    ['QSF_SAMPLER_OPTION(real, a, a, lots, 0, 1, "A.")', 'not a number'],
    ['QSF_STAT(u16, a, a, "A.")', 'an unknown type'],
    ['QSF_STEP(working, "Twice.")', 'a name twice'],
    ['QSF_CALL(Session, u32, a, a, (u16 b), "A.")', 'an unknown type of an argument'],
    ['QSF_CALL(Session, u16, a, a, (), "A.")', 'an unknown type of a result'],
    ['QSF_CALL(Other, u32, a, a, (), "A.")', 'an unknown class'],
  ])('refuses %s: %s', (row) => {
    expect(() => generated(`${list}\n${row}\n`)).toThrow('boundary.def');
  });
});

describe('options', () => {
  it('that are not given have their defaults', () => {
    expect(checkOptions(samplerOptions, {})).toEqual({
      temperature: 0.7,
      topK: 40,
      topP: 0.9,
      repetitionPenalty: 1,
      seed: 0,
      minP: 0,
      typicalP: 1,
      topNSigma: -1,
      xtcProbability: 0,
      xtcThreshold: 0.1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      repeatLastN: -1,
      dryMultiplier: 0,
      dryBase: 1.75,
      dryAllowedLength: 2,
      dryPenaltyLastN: -1,
      dynatempRange: 0,
      dynatempExponent: 1,
      mirostat: 0,
      mirostatTau: 5,
      mirostatEta: 0.1,
    });
    expect(checkOptions(promptOptions, { maxTokens: undefined, addBos: false })).toMatchObject({
      maxTokens: 256,
      addBos: false,
    });
  });

  it('are exactly those of the list', () => {
    expect(checkOptions(openOptions, { maxSeqLen: 7, more: 1 } as object)).not.toHaveProperty('more');
  });

  it.each([
    [{ temperature: 0 }],
    [{ temperature: 3.4e38 }],
    [{ topP: 1 }],
    [{ topP: 1e-30 }],
    [{ topK: 4_294_967_295 }],
    [{ seed: Number.MAX_SAFE_INTEGER }],
    [{ minP: 1, topNSigma: -1, presencePenalty: -3.4e38, repeatLastN: -1, dryBase: 1 }],
    [{ repeatLastN: 2_147_483_647, dryAllowedLength: 1000, mirostat: 2 }],
  ])('at their limits are taken: %o', (given) => {
    expect(checkOptions(samplerOptions, given)).toMatchObject(given);
  });

  it.each([
    [{ temperature: -1 }, 'temperature is -1; it must be 0 to 3.4e+38'],
    [{ temperature: NaN }, 'temperature is NaN; it must be 0 to 3.4e+38'],
    [{ temperature: Infinity }, 'temperature is Infinity; it must be 0 to 3.4e+38'],
    [{ temperature: '1' }, 'temperature is "1"; it must be 0 to 3.4e+38'],
    [{ topP: 0 }, 'topP is 0; it must be above 0 and at most 1'],
    [{ topP: 1.1 }, 'topP is 1.1; it must be above 0 and at most 1'],
    [{ repetitionPenalty: -0.5 }, 'repetitionPenalty is -0.5; it must be above 0 and at most 3.4e+38'],
    [{ topK: 1.5 }, 'topK is 1.5; it must be a whole number from 0 to 4294967295'],
    [{ topK: 4_294_967_296 }, 'topK is 4294967296; it must be a whole number from 0 to 4294967295'],
    [{ minP: 1.5 }, 'minP is 1.5; it must be 0 to 1'],
    [{ typicalP: 0 }, 'typicalP is 0; it must be above 0 and at most 1'],
    [{ topNSigma: -2 }, 'topNSigma is -2; it must be -1 to 3.4e+38'],
    [{ xtcProbability: NaN }, 'xtcProbability is NaN; it must be 0 to 1'],
    [{ repeatLastN: -2 }, 'repeatLastN is -2; it must be a whole number from -1 to 2147483647'],
    [{ repeatLastN: 0.5 }, 'repeatLastN is 0.5; it must be a whole number from -1 to 2147483647'],
    [{ dryBase: 0.5 }, 'dryBase is 0.5; it must be 1 to 3.4e+38'],
    [{ dryAllowedLength: 0 }, 'dryAllowedLength is 0; it must be a whole number from 1 to 1000'],
    [{ mirostat: 3 }, 'mirostat is 3; it must be a whole number from 0 to 2'],
    [{ seed: -1 }, 'seed is -1; it must be a whole number from 0 to 9007199254740991'],
    [{ seed: 2 ** 53 }, 'seed is 9007199254740992; it must be a whole number from 0 to 9007199254740991'],
  ])('beyond them are refused: %o', (given, sentence) => {
    expect(() => checkOptions(samplerOptions, given as object)).toThrow(refused(sentence));
  });

  it('that are flags are true or false', () => {
    expect(() => checkOption('addBos', promptOptions.addBos, 1 as never)).toThrow(
      refused('addBos is 1; it must be true or false'),
    );
  });

  it('that are names are of the list', () => {
    expect(checkName('kv', kvTypes, '8bit')).toBe('8bit');
    expect(checkName('kv', kvTypes, undefined)).toBeUndefined();
    expect(() => checkName('kv', kvTypes, 'q8' as never)).toThrow(
      refused(`kv is "q8"; it must be one of ${kvTypes.join(', ')}`),
    );
  });
});

describe('lists of sampling', () => {
  it('are undefined if none is given', () => {
    expect(samplingLists({})).toBeUndefined();
    expect(samplingLists({ logitBias: undefined, minP: 0.1 })).toBeUndefined();
  });

  it('are biases by token id, names in their order, and texts', () => {
    expect(samplingLists({ logitBias: { 7: -Infinity, 15_043: 1.5 } })).toEqual({
      biases: [
        [7, -Infinity],
        [15_043, 1.5],
      ],
    });
    expect(samplingLists({ samplers: ['min_p', 'temperature'], drySequenceBreakers: ['\n', 'Ä'] })).toEqual({
      biases: [],
      samplers: ['min_p', 'temperature'],
      breakers: ['\n', 'Ä'],
    });
    expect(samplingLists({ samplers: [], drySequenceBreakers: [] })).toEqual({
      biases: [],
      samplers: [],
      breakers: [],
    });
  });

  const bias = 'it must have a number or -Infinity for each token id';
  const texts = 'it must be a list of at most 16 texts, none empty';
  it.each([
    [{ logitBias: 5 }, 'logitBias is 5; it must be an object'],
    [{ logitBias: [1] }, 'logitBias is a list or a Map; it must be an object with token ids as names'],
    [{ logitBias: new Map([[5, 1]]) }, 'logitBias is a list or a Map; it must be an object with token ids as names'],
    [{ logitBias: { a: 1 } }, `logitBias has "a": 1; ${bias}`],
    [{ logitBias: { '-1': 1 } }, `logitBias has "-1": 1; ${bias}`],
    [{ logitBias: { 4294967296: 1 } }, `logitBias has "4294967296": 1; ${bias}`],
    [{ logitBias: { 5: NaN } }, `logitBias has "5": NaN; ${bias}`],
    [{ logitBias: { 5: Infinity } }, `logitBias has "5": Infinity; ${bias}`],
    [{ logitBias: { 5: '1' } }, `logitBias has "5": "1"; ${bias}`],
    [{ samplers: 'top_k' }, 'samplers is "top_k"; it must be a list'],
    [{ samplers: ['topK'] }, `a name in samplers is "topK"; it must be one of ${samplerKinds.join(', ')}`],
    [{ samplers: [undefined] }, `a name in samplers is undefined; it must be one of ${samplerKinds.join(', ')}`],
    [{ drySequenceBreakers: 'x' }, 'drySequenceBreakers is "x"; it must be a list'],
    [{ drySequenceBreakers: [''] }, `drySequenceBreakers is [""]; ${texts}`],
    [{ drySequenceBreakers: [1] }, `drySequenceBreakers is [1]; ${texts}`],
    [{ drySequenceBreakers: ['a\0'] }, `drySequenceBreakers is ["a\\u0000"]; ${texts}`],
    [
      { drySequenceBreakers: Array<string>(17).fill('a') },
      `drySequenceBreakers is ${JSON.stringify(Array(17).fill('a'))}; ${texts}`,
    ],
  ])('of another form are refused: %o', (given, sentence) => {
    expect(() => samplingLists(given as unknown as GenerateOptions)).toThrow(refused(sentence));
  });
});
