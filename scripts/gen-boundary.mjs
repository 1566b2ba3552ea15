#!/usr/bin/env node
// Makes docs/boundary.md and web/src/boundary.gen.ts from include/qsf/base/boundary.def; with --check only says whether
// they are what would be made.
import { readRows, writeGenerated } from './lib/generated.mjs';
import { Stop, isMain, main } from './lib/process.mjs';

const source = 'include/qsf/base/boundary.def';

/** Lists of names. `shown`: the rows tell a name to users beside their own. */
const enumerations = [
  { macro: 'QSF_STEP', title: 'Steps', about: 'What a step did or needs, by number.', list: 'steps', type: 'Step' },
  { macro: 'QSF_END', title: 'Ends', about: 'Why a generation ended, by number.', list: 'ends', type: 'End' },
  {
    macro: 'QSF_POOLING',
    title: 'Pooling',
    about: 'How last hidden states become an embedding, by number.',
    list: 'poolings',
    type: 'Pooling',
  },
  {
    macro: 'QSF_KV_TYPE',
    title: 'Keys and values',
    about: 'How keys and values are kept, finest first, by number.',
    list: 'kvTypes',
    type: 'KvType',
    shown: 'values',
  },
  {
    macro: 'QSF_REGION',
    title: 'Regions',
    about: 'What memory is used for, by number.',
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

/** Lists of what is told. */
const records = [
  { macro: 'QSF_STAT', title: 'Statistics of a session', list: 'sessionStats', type: 'SessionStats' },
  { macro: 'QSF_SEQUENCE_STAT', title: 'Statistics of a sequence', list: 'sequenceStats', type: 'SequenceStats' },
  { macro: 'QSF_READ_FIELD', title: 'A request to read, in WebAssembly', list: 'readRequest', type: 'ReadRequest' },
  { macro: 'QSF_SEGMENT_FIELD', title: 'A segment, in WebAssembly', list: 'segment', type: 'Segment' },
  { macro: 'QSF_REGION_FIELD', title: 'A region of memory, in WebAssembly', list: 'memoryRegion', type: 'RegionBytes' },
  { macro: 'QSF_KERNEL_FIELD', title: 'Calls of a kernel, in WebAssembly', list: 'kernelCount', type: 'KernelCount' },
];

/** Types of rows: in TypeScript, and in words. */
const types = {
  u32: { ts: 'number', word: 'whole' },
  u64: { ts: 'number', word: 'whole' },
  real: { ts: 'number', word: 'real' },
  flag: { ts: 'boolean', word: 'flag' },
  text: { ts: 'string', word: 'text' },
  kv: { ts: 'KvType', word: 'KV type' },
  region: { ts: 'Region', word: 'region' },
  place: { ts: 'number', word: 'address' },
};

/** boundary.h's constants, by their names there. */
const constants = { kAboveZero: 2 ** -126 };

/** A number or truth value as C++ writes it; a 64-bit one as far as JavaScript's numbers are exact. */
function literal(text, type) {
  if (type === 'flag') return text === 'true' || Number(text) === 1;
  const number = constants[text] ?? Number(text.replace(/(?<=[\d.])[uf]$/, ''));
  if (Number.isNaN(number)) throw new Stop(`${source}: ${text} is not a number.`);
  return type === 'real' ? number : Math.min(number, Number.MAX_SAFE_INTEGER);
}

function option({ args: [type, name, js, fallback, least, most, meaning], line }) {
  if (!['u32', 'u64', 'real', 'flag'].includes(type) || !meaning) {
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

function entry({ args: [name, ...rest], line }, { macro, shown }) {
  const [told, meaning] = shown ? rest : [name, ...rest];
  if (!meaning || rest.length !== (shown ? 2 : 1)) throw new Stop(`${source}: not a row of ${macro}: ${line}`);
  return { name, told, meaning };
}

/** The lists, each with the rows of its macro. */
function readLists(text) {
  const lists = [...enumerations, ...options, ...records];
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

/** Default and limits, as a reader wants them. */
function limits({ type, fallback, least, most }) {
  if (type === 'flag') return `Default ${fallback}.`;
  const begin = least === constants.kAboveZero ? 'above 0' : String(least);
  const kind = type === 'real' ? '' : 'a whole number from ';
  const range = least === constants.kAboveZero ? `above 0 and at most ${most}` : `${kind}${begin} to ${most}`;
  return `Default ${fallback}; ${range}.`;
}

function typescript({ enumerations, options, records }) {
  const blocks = [
    `// Made by scripts/gen-boundary.mjs from ${source}.

/** The least value of a number that must be above 0. */
export const ABOVE_ZERO = 2 ** -126;

/** What an option may be; flags have no limits. */
export interface OptionRule<T> {
  readonly type: 'u32' | 'u64' | 'real' | 'flag';
  readonly fallback: T;
  readonly least: number;
  readonly most: number;
}

export type OptionRules<T> = { readonly [K in keyof T]: OptionRule<T[K]> };

/** How what is told crosses: fields in the order of their columns, a text as its place and its size. */
export type Column = ${Object.keys(types).map(quote).join(' | ')};
export type Columns<T> = { readonly [K in keyof T]: Column };`,
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
  for (const { title, list, type, rows } of options) {
    const members = rows.map((row) => `  /** ${row.meaning} ${limits(row)} */\n  ${row.js}: ${types[row.type].ts};`);
    const rules = rows.map(
      ({ js, type, fallback, least, most }) =>
        `  ${js}: { type: ${quote(type)}, fallback: ${fallback}, least: ${value(Number(least))}, most: ${value(Number(most))} },`,
    );
    blocks.push(
      `/** ${title}. */\nexport interface ${type} {\n${members.join('\n')}\n}`,
      `export const ${list}: OptionRules<${type}> = {\n${rules.join('\n')}\n};`,
    );
  }
  for (const { title, list, type, rows } of records) {
    const members = rows.map(({ type, js, meaning }) => `  /** ${meaning} */\n  ${js}: ${types[type].ts};`);
    blocks.push(
      `/** ${title}. */\nexport interface ${type} {\n${members.join('\n')}\n}`,
      `export const ${list}: Columns<${type}> = {\n${rows.map(({ type, js }) => `  ${js}: ${quote(type)},`).join('\n')}\n};`,
    );
  }
  return `${blocks.join('\n\n')}\n`;
}

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('<', '&lt;');
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

/** What an option may be, for a table. */
function range({ type, least, most, largest }) {
  if (type === 'flag') return 'true or false';
  return least === constants.kAboveZero
    ? `above 0 and at most ${most}`
    : `${least} to ${type === 'u64' ? largest : most}`;
}

function markdown({ enumerations, options, records }) {
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
  ];
  return `<!-- Made by scripts/gen-boundary.mjs from ${source}. -->

# What crosses between the engine and its hosts

Each list is written once, in [boundary.def](../${source}); C++ (\`qsf/engine.h\`), what crosses in
WebAssembly and TypeScript are made from it. The package's public types (\`web/src/types.ts\`) say which of the options it passes
on. Whole numbers cross to JavaScript as doubles, so a 64-bit one goes up to 2^53 - 1 there.

${sections.map(([title, text]) => `## ${title}\n\n${text}\n`).join('\n')}`;
}

/** What each generated file holds, by its path. */
export function generated(text) {
  const boundary = readLists(text);
  return { 'docs/boundary.md': markdown(boundary), 'web/src/boundary.gen.ts': typescript(boundary) };
}

if (isMain(import.meta.url)) await main(() => writeGenerated(generated(), source, 'scripts/gen-boundary.mjs'));
