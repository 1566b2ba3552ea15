#!/usr/bin/env node
// Writes boundary.md, web/src/boundary.gen.ts and web/src/session.gen.ts from include/qsf/base/boundary.def, and the names of
// types from include/qsf/formats/format.h. With --check, only reports whether they are current.
import { roundedFormats } from './lib/doc-tables.mjs';
import { readRows, writeGenerated } from './lib/generated.mjs';
import { Stop, isMain, main } from './lib/process.mjs';
import { reference } from './lib/reference.mjs';

const source = 'include/qsf/base/boundary.def';

/** Lists of names. `shown`: the rows have a second name for users. */
const enumerations = [
  { macro: 'QSF_STEP', title: 'Steps', about: 'Results of a step, by number.', list: 'steps', type: 'Step' },
  {
    macro: 'QSF_END',
    title: 'Ends',
    about: 'Reasons for the end of a generation, by number.',
    list: 'ends',
    type: 'End',
  },
  {
    macro: 'QSF_POOLING',
    title: 'Pooling',
    about: 'Ways to reduce last hidden states to an embedding, by number.',
    list: 'poolings',
    type: 'Pooling',
  },
  {
    macro: 'QSF_GRAMMAR',
    title: 'Grammars',
    about: 'Languages of grammars, by number.',
    list: 'grammarKinds',
    type: 'GrammarKind',
  },
  {
    macro: 'QSF_SAMPLER',
    title: 'Samplers',
    about: 'Samplers in their default order.',
    list: 'samplerKinds',
    type: 'SamplerKind',
  },
  {
    macro: 'QSF_PART',
    title: 'Parts of answers',
    about: 'Kinds of parts of an answer, by number.',
    list: 'answerParts',
    type: 'AnswerPart',
  },
  {
    macro: 'QSF_KV_TYPE',
    title: 'Keys and values',
    about: 'Types of the KV cache, finest first, by number.',
    list: 'kvTypes',
    type: 'KvType',
    shown: 'values',
  },
  {
    macro: 'QSF_REGION',
    title: 'Regions',
    about: 'Uses of memory, by number.',
    list: 'regions',
    type: 'Region',
    shown: 'regionNames',
  },
];

/** Lists of options. */
const options = [
  { macro: 'QSF_OPEN_OPTION', title: 'Options of an opening', list: 'openOptions', type: 'OpenOptions' },
  { macro: 'QSF_SAMPLER_OPTION', title: 'Options of sampling', list: 'samplerOptions', type: 'SamplerOptions' },
  { macro: 'QSF_PROMPT_OPTION', title: 'Options of a prompt', list: 'promptOptions', type: 'PromptOptions' },
  { macro: 'QSF_EMBED_OPTION', title: 'Options of an embedding', list: 'embeddingOptions', type: 'EmbeddingOptions' },
];

/** Lists of statistics and rows. */
const records = [
  { macro: 'QSF_STAT', title: 'Statistics of a session', type: 'SessionStats' },
  { macro: 'QSF_SEQUENCE_STAT', title: 'Statistics of a sequence', type: 'SequenceStats' },
  { macro: 'QSF_READ_FIELD', title: 'A request to read, in WebAssembly', type: 'ReadRequest' },
  { macro: 'QSF_SEGMENT_FIELD', title: 'A segment, in WebAssembly', type: 'Segment' },
  { macro: 'QSF_REGION_FIELD', title: 'A region of memory, in WebAssembly', type: 'RegionBytes' },
  { macro: 'QSF_KERNEL_FIELD', title: 'Calls of a kernel, in WebAssembly', type: 'KernelCount' },
  { macro: 'QSF_LOGPROB_FIELD', title: 'The log-probability of a token, in WebAssembly', type: 'TokenLogprob' },
  { macro: 'QSF_TIME_FIELD', title: 'A local time, in WebAssembly', type: 'LocalTime' },
  { macro: 'QSF_PART_FIELD', title: 'A part of an answer, in WebAssembly', type: 'AnswerPiece' },
  { macro: 'QSF_SAVED_FIELD', title: 'A saved sequence, in WebAssembly', type: 'SavedHeader' },
  { macro: 'QSF_FAILURE_FIELD', title: 'What failed, in WebAssembly', type: 'Failure' },
];

/** The list of a session's calls in WebAssembly. */
const calls = [{ macro: 'QSF_CALL', title: 'Calls of a session, in WebAssembly', type: 'Session' }];

/** Types of rows, in TypeScript and in words. */
const types = {
  u32: { ts: 'number', word: 'whole' },
  u64: { ts: 'number', word: 'whole' },
  i32: { ts: 'number', word: 'whole' },
  real: { ts: 'number', word: 'real' },
  flag: { ts: 'boolean', word: 'flag' },
  text: { ts: 'string', word: 'text' },
  kv: { ts: 'KvType', word: 'KV type' },
  region: { ts: 'Region', word: 'region' },
  part: { ts: 'AnswerPart', word: 'part' },
  place: { ts: 'number', word: 'address' },
  code: { ts: 'number', word: 'whole' },
};

/** Types of calls' results and arguments in TypeScript, in addition to those of rows. */
const callTypes = {
  ...Object.fromEntries(Object.entries(types).map(([name, { ts }]) => [name, ts])),
  none: 'void',
  status: 'Failure | undefined',
  failure: 'Failure',
  step: 'Step',
  end: 'End',
  request: 'ReadRequest | undefined',
  room: 'Uint8Array | undefined',
  bytes: 'Uint8Array',
  values: 'Float32Array',
  tokens: 'Uint32Array | Failure',
  ids: 'Uint32Array',
  piece: 'Uint8Array | Failure',
  saved: 'SavedHeader | Failure',
  done: 'boolean | Failure',
  stats: 'SessionStats',
  sequence_stats: 'SequenceStats',
  regions: 'RegionBytes[]',
  kernels: 'KernelCount[]',
  logprobs: 'TokenLogprob[]',
  segments: 'Segment[]',
  parts: 'AnswerPiece[]',
  kv_choice: 'KvType | undefined',
  pooling_choice: 'Pooling | undefined',
  flag_choice: 'boolean | undefined',
  size_choice: 'number | undefined',
  grammar_kind: 'GrammarKind | undefined',
  time: 'LocalTime',
  open_options: 'OpenOptions',
  other: 'Session',
  sampler_options: 'SamplerOptions',
  prompt_options: 'PromptOptions',
  embedding_options: 'EmbeddingOptions',
};

/** boundary.h's constants, by their C++ names. */
const constants = { kAboveZero: 2 ** -126 };

/** Returns a number or truth value from its C++ form. 64-bit numbers are exact as far as JavaScript's numbers are. */
function literal(text, type) {
  if (type === 'flag') return text === 'true' || Number(text) === 1;
  const number = constants[text] ?? Number(text.replace(/(?<=[\d.])[uf]$/, ''));
  if (Number.isNaN(number)) throw new Stop(`${source}: ${text} is not a number.`);
  return type === 'real' ? number : Math.min(number, Number.MAX_SAFE_INTEGER);
}

function option({ args: [type, name, js, fallback, least, most, meaning], line }) {
  if (!['u32', 'u64', 'i32', 'real', 'flag'].includes(type) || !meaning) {
    throw new Stop(
      `${source}: this line is not (type, name, nameInJavaScript, default, least, most, "meaning"): ${line}`,
    );
  }
  return {
    ...{ type, name, js, meaning },
    fallback: literal(fallback, type),
    least: literal(least, type),
    most: literal(most, type),
    largest: most.replace(/u$/, ''),
  };
}

function field({ args: [type, name, js, meaning], line }) {
  if (!types[type] || !meaning) {
    throw new Stop(`${source}: this line is not (type, name, nameInJavaScript, "meaning"): ${line}`);
  }
  return { type, name, js, meaning };
}

function call({ args: [of, result, name, js, list, meaning], line }) {
  const known = (type) => Object.hasOwn(callTypes, type);
  const parameters = /^\((.*)\)$/
    .exec(list ?? '')?.[1]
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => part.trim().split(' '));
  const right = parameters?.every((part) => part.length === 2 && known(part[0]));
  if (!['Session', 'Instance'].includes(of) || !known(result) || !right || !meaning) {
    throw new Stop(
      `${source}: this line is not (class, result, name, nameInJavaScript, (arguments), "meaning"): ${line}`,
    );
  }
  return {
    name,
    js,
    meaning,
    result: callTypes[result],
    parameters: parameters.map(([type, as]) => `${as}: ${callTypes[type]}`),
  };
}

function entry({ args: [name, ...rest], line }, { macro, shown }) {
  const [told, meaning] = shown ? rest : [name, ...rest];
  if (!meaning || rest.length !== (shown ? 2 : 1)) throw new Stop(`${source}: not a row of ${macro}: ${line}`);
  return { name, told, meaning };
}

/** Returns the lists, each with the rows of its macro. */
function readLists(text) {
  const lists = [...enumerations, ...options, ...records, ...calls];
  const rows = readRows(
    source,
    lists.map(({ macro }) => macro),
    text,
  );
  const filled = (all, read) =>
    all.map((list) => ({
      ...list,
      rows: rows.filter(({ macro }) => macro === list.macro).map((row) => read(row, list)),
    }));
  const boundary = {
    enumerations: filled(enumerations, entry),
    options: filled(options, option),
    records: filled(records, field),
    calls: filled(calls, call),
  };
  for (const { macro, rows: own } of Object.values(boundary).flat()) {
    if (own.length === 0) throw new Stop(`${source} has no ${macro}.`);
    for (const key of ['name', 'js']) {
      const names = own.map((row) => row[key]).filter((name) => name !== undefined);
      if (new Set(names).size !== names.length) throw new Stop(`${source}: two rows of ${macro} have one name.`);
    }
  }
  return boundary;
}

const quote = (text) => (text.includes("'") ? JSON.stringify(text) : `'${text}'`);
const value = (number) => (number === constants.kAboveZero ? 'ABOVE_ZERO' : String(number).replace('e+', 'e'));

/** Returns a meaning with the options' names in JavaScript. */
const withNames = (meaning, rows) =>
  meaning.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, (name) => rows.find((row) => row.name === name)?.js ?? name);

/** Returns default and limits as text for a reader. */
function limits({ type, fallback, least, most }) {
  if (type === 'flag') return `Default ${fallback}.`;
  const begin = least === constants.kAboveZero ? 'above 0' : String(least);
  const kind = type === 'real' ? '' : 'a whole number from ';
  const range = least === constants.kAboveZero ? `above 0 and at most ${most}` : `${kind}${begin} to ${most}`;
  return `Default ${fallback}; ${range}.`;
}

/** Returns a call's declaration in TypeScript. */
const signature = (js, { parameters, result }) => `${js}(${parameters.join(', ')}): ${result}`;

/** Returns a call as a member of an interface, in prettier's layout. */
function member(js, { parameters, result }) {
  const line = `  ${signature(js, { parameters, result })};`;
  if (line.length <= 120) return line;
  return `  ${js}(\n${parameters.map((parameter) => `    ${parameter},\n`).join('')}  ): ${result};`;
}

function typescript({ enumerations, options }) {
  const blocks = [
    `// Made by scripts/gen-boundary.mjs from ${source}.
export type * from './session.gen.js';

/** The least value of a number that must be above 0. */
export const ABOVE_ZERO = 2 ** -126;

/** What an option may be; flags have no limits. */
export interface OptionRule<T> {
  readonly type: 'u32' | 'u64' | 'i32' | 'real' | 'flag';
  readonly fallback: T;
  readonly least: number;
  readonly most: number;
}

export type OptionRules<T> = { readonly [K in keyof T]: OptionRule<T[K]> };`,
  ];
  for (const { about, list, type, shown, rows } of enumerations) {
    const names = rows.map(({ name, told, meaning }) => `  ${quote(shown === 'values' ? told : name)}, // ${meaning}`);
    blocks.push(`/** ${about} */
export const ${list} = [
${names.join('\n')}
] as const;
export type ${type} = (typeof ${list})[number];`);
    if (shown && shown !== 'values') {
      blocks.push(`/** The names to users. */
export const ${shown}: Readonly<Record<${type}, string>> = {
${rows.map(({ name, told }) => `  ${name}: ${quote(told)},`).join('\n')}
};`);
    }
  }
  blocks.push(`/** The types that a page rounds matrices to: those that need no search. */
export const quantTypes = [
${roundedFormats()
  .map((name) => `  ${quote(name)},`)
  .join('\n')}
] as const;
export type QuantType = (typeof quantTypes)[number];`);
  for (const { title, list, type, rows } of options) {
    const members = rows.map(
      (row) => `  /** ${withNames(row.meaning, rows)} ${limits(row)} */\n  ${row.js}: ${types[row.type].ts};`,
    );
    const rules = rows.map(
      ({ js, type, fallback, least, most }) =>
        `  ${js}: { type: ${quote(type)}, fallback: ${fallback}, least: ${value(Number(least))}, most: ${value(Number(most))} },`,
    );
    blocks.push(
      `/** ${title}. */\nexport interface ${type} {\n${members.join('\n')}\n}`,
      `export const ${list}: OptionRules<${type}> = {\n${rules.join('\n')}\n};`,
    );
  }
  return `${blocks.join('\n\n')}\n`;
}

/** Returns the declarations of a session in WebAssembly: its calls, and the records that they give. */
function sessionTypes({ enumerations, options, records, calls }) {
  const blocks = [];
  const declare = (title, type, members) =>
    blocks.push(`/** ${title}. */\nexport interface ${type} {\n${members.join('\n')}\n}`);
  for (const { title, type, rows } of records) {
    declare(
      title,
      type,
      rows.map(({ type, js, meaning }) => `  /** ${meaning} */\n  ${js}: ${types[type].ts};`),
    );
  }
  for (const { title, type, rows } of calls) {
    declare(
      title,
      type,
      rows.map(({ js, meaning, ...row }) => `  /** ${meaning} */\n${member(js, row)}`),
    );
  }
  const text = blocks.join('\n\n');
  const used = [...enumerations, ...options]
    .map(({ type }) => type)
    .filter((type) => new RegExp(`: ${type}\\b`).test(text));
  return `// Made by scripts/gen-boundary.mjs from ${source}.
import type {
${used
  .sort()
  .map((type) => `  ${type},`)
  .join('\n')}
} from './boundary.gen.js';

${text}
`;
}

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('<', '&lt;');
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

/** Returns the range of an option for a table. */
function range({ type, least, most, largest }) {
  if (type === 'flag') return 'true or false';
  return least === constants.kAboveZero
    ? `above 0 and at most ${most}`
    : `${least} to ${type === 'u64' ? largest : most}`;
}

function markdown({ enumerations, options, records, calls }) {
  const sections = [
    ...enumerations.map(({ title, about, shown, rows }) => [
      title,
      `${about}\n\n${table(
        ['Number', 'Name', ...(shown ? ['Shown as'] : []), 'Meaning'],
        rows.map(({ name, told, meaning }, i) => [i, `\`${name}\``, ...(shown ? [told] : []), meaning]),
      )}`,
    ]),
    ...options.map(({ title, rows }) => [
      title,
      table(
        ['C++', 'JavaScript', 'Default', 'Limits', 'Meaning'],
        rows.map((row) => [`\`${row.name}\``, `\`${row.js}\``, row.fallback, range(row), row.meaning]),
      ),
    ]),
    ...records.map(({ title, rows }) => [
      title,
      table(
        ['C++', 'JavaScript', 'Kind', 'Meaning'],
        rows.map((row) => [`\`${row.name}\``, `\`${row.js}\``, types[row.type].word, row.meaning]),
      ),
    ]),
    ...calls.map(({ title, rows }) => [
      title,
      table(
        ['Call', 'Meaning'],
        rows.map(({ js, meaning, ...row }) => [`\`${signature(js, row)}\``, meaning]),
      ),
    ]),
  ];
  return `<!-- Made by scripts/gen-boundary.mjs from ${source}. -->

# The boundary between the engine and its hosts

Each list is written once, in [boundary.def](../../${source}). The C++ structures of \`qsf/engine.h\`, the embind
class of WebAssembly (\`wasm/bindings.cpp\`), its declarations in TypeScript and this page are generated from it. The package's
public types (\`web/src/types.ts\`) state which options the package passes on. Enumerations cross as their names. Integers cross to JavaScript as doubles, so a 64-bit integer is at most 2^53 - 1 there.

${sections.map(([title, text]) => `## ${title}\n\n${text}\n`).join('\n')}`;
}

/** Returns the text of each generated file, by its path. */
export function generated(text) {
  const boundary = readLists(text);
  return {
    [`${reference}/boundary.md`]: markdown(boundary),
    'web/src/boundary.gen.ts': typescript(boundary),
    'web/src/session.gen.ts': sessionTypes(boundary),
  };
}

if (isMain(import.meta.url)) await main(() => writeGenerated(generated(), source, 'scripts/gen-boundary.mjs'));
