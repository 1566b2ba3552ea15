// JSON schemas hold the texts of a model: every whole text parses and is valid for ajv, with every seed.
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { beforeAll, describe, expect, it } from 'vitest';

import { grammarKinds } from '../../web/src/boundary.gen.js';
import { Fed, stage, startModule, stories } from './module.js';

const MiB = 1024 * 1024;
const MEMORY = 32 * MiB;
/** QSF_SEEDS=200 takes ten times as long. */
const SEEDS = Number(process.env['QSF_SEEDS'] ?? 20);
const MOST = 400;

const text = (maxLength: number) => ({ type: 'string', maxLength });
const whole = (minimum: number, maximum: number) => ({ type: 'integer', minimum, maximum });
const closed = (properties: object, optional: string[] = []) => ({
  ...{ type: 'object', properties, additionalProperties: false },
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});

const schemas = {
  'an object': closed({ name: text(12), age: whole(3, 120) }),
  'optional members': closed({ a: whole(-5, 5), b: { type: 'boolean' }, c: { type: 'null' }, d: text(4) }, [
    'a',
    'c',
    'd',
  ]),
  'a list of objects': {
    ...{ type: 'array', minItems: 1, maxItems: 3 },
    items: closed({ id: whole(0, 99), tag: { enum: ['red', 'green', 7, null, [1]] } }),
  },
  'one of several kinds': {
    oneOf: [
      closed({ kind: { const: 'circle' }, radius: { type: 'number', exclusiveMinimum: 0, maximum: 10 } }),
      closed({
        kind: { const: 'box' },
        size: { type: 'array', prefixItems: [whole(1, 9), whole(1, 9)], items: false, minItems: 2 },
      }),
    ],
  },
  'a tree': {
    $ref: '#/$defs/node',
    $defs: {
      node: closed({ value: whole(0, 9), next: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/leaf' }] } }),
      leaf: closed({ value: whole(0, 9) }),
    },
  },
  'dates and addresses': closed({
    day: { type: 'string', format: 'date' },
    at: { type: 'string', format: 'date-time' },
    from: { type: 'string', format: 'ipv4' },
    id: { type: 'string', format: 'uuid' },
  }),
  patterns: closed({
    code: { type: 'string', pattern: '^[A-Z]{2}-[0-9]{3,5}$' },
    word: { type: 'string', pattern: '^(the|a) \\w{1,8}$' },
  }),
  'members by pattern': {
    ...{ type: 'object', patternProperties: { '^x_[a-z]{1,3}$': whole(0, 9) }, additionalProperties: false },
    ...{ minProperties: 1, maxProperties: 3 },
  },
  'all of several': {
    allOf: [
      { type: 'object', properties: { n: { type: 'integer', minimum: 10 } }, required: ['n'] },
      { properties: { n: { maximum: 30 } }, additionalProperties: false },
    ],
  },
  'a condition': {
    ...closed({ unit: { enum: ['C', 'F'] }, degrees: whole(-50, 150) }),
    ...{ if: { properties: { unit: { const: 'C' } } }, then: { properties: { degrees: { maximum: 60 } } } },
  },
};

let fed: Fed;
beforeAll(async () => {
  fed = new Fed(await startModule(MEMORY), stories());
  const failure = fed.open(MEMORY, { textBytes: 8 * MiB });
  expect(failure).toBeUndefined();
});

describe.each(Object.entries(schemas))('%s', (_, schema) => {
  it(`is held with ${SEEDS} seeds`, () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, strictTuples: false });
    formats.default(ajv);
    const valid = ajv.compile(schema);
    const seen = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const rules = new TextEncoder().encode(JSON.stringify(schema));
      stage(fed.session, rules);
      expect(fed.session.guide(grammarKinds[2], rules.length)).toBeUndefined();
      fed.session.rewind(0, 0);
      const options = { seed, maxTokens: MOST, temperature: 1.5, topK: 0, topP: 1 };
      expect(fed.start('Once upon a time', options)).toBeUndefined();
      const { text: made, tokens } = fed.generate();
      expect(fed.session.end(0), made).toMatch(/eos|stop/);
      expect(tokens.length, made).toBeLessThan(MOST);
      expect(valid(JSON.parse(made)), `${made}: ${ajv.errorsText(valid.errors)}`).toBe(true);
      seen.add(made);
    }
    expect(seen.size).toBeGreaterThan(SEEDS / 4);
  });
});
