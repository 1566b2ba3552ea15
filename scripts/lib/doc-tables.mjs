// Lists and tables between `<!-- made: NAME -->` and `<!-- end -->` in documents, made from the sources that declare
// them.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { readErrors } from '../gen-errors.mjs';
import { installation } from './manifest.mjs';
import { Stop, root } from './process.mjs';
import { reference } from './reference.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

/** Returns the groups of every match in a file. At least one match is required. */
function matches(path, pattern) {
  const found = [...read(path).matchAll(pattern)].map(([, ...groups]) => groups);
  if (found.length === 0) throw new Stop(`${path} holds nothing like ${pattern}.`);
  return found;
}

/** The rules of rounding that search. The page's maker has none of them: wasm/maker/maker.cpp. */
const searches = ['elsewhere', 'least_path'];

/**
 * Returns the quantization formats: name, weights and bytes of a block, and whether weights are rounded to it by a search.
 */
export const formats = () =>
  matches('include/qsf/formats/format.h', /^ {4}Format\{[^"]*"([^"]+)", +(\d+), +(\d+),.* Rounding::(\w+)/gm).map(
    ([name, block, bytes, rounding]) => ({
      ...{ name, block: Number(block), bits: (8 * Number(bytes)) / Number(block) },
      searched: searches.includes(rounding),
    }),
  );

/** Returns the names of the formats that weights are rounded to without a search. */
export const roundedFormats = () => formats().flatMap(({ name, searched }) => (searched ? [] : [name]));

/** Returns the types of the KV cache, by the names that users give. */
export const kvTypes = () => matches('include/qsf/base/kv_types.def', /^QSF_KV_TYPE\(\w+, "([^"]+)"/gm).flat();

const processors = { x86: 'x86-64', arm: '64-bit ARM', wasm: 'WebAssembly', any: 'anywhere' };

/** Returns the instruction sets by the processors that may have them. */
export function instructionSets() {
  const sets = new Map();
  for (const [name, kind] of matches('cmake/QsfIsas.cmake', /^qsf_isa\((\S+) ([^\s)]+)/gm)) {
    const where = processors[kind.replace(/-.*/, '')];
    sets.set(where, [...(sets.get(where) ?? []), name]);
  }
  return sets;
}

/** Returns the kinds of input that the converter reads. */
export const inputKinds = () =>
  matches('converter/readers/inputs.h', /^ {4}InputKind\{"([^"]+)",\s+"([^"]+)"/gm).map(([name, description]) => ({
    name,
    description,
  }));

/**
 * Returns the recipes that a source names. The variant of a recipe for experts has the name of the recipe that it
 * replaces.
 */
const recipes = () => {
  const all = readdirSync(join(root, 'converter', 'recipes'))
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(read(`converter/recipes/${file}`)));
  const isVariant = (recipe) =>
    all.some(({ name, with_experts: other }) => other === recipe.name && name === recipe.like);
  return all.filter((recipe) => !isVariant(recipe));
};

/** Returns the architectures for which the converter has a recipe. */
export const architectures = () => recipes().map(({ name }) => name);

/** Returns the golden models: each one's name in config.json, and whether it has a GGUF file. */
const goldenModels = () =>
  readdirSync(join(root, 'tests', 'data'))
    .filter((name) => existsSync(join(root, 'tests', 'data', name, 'golden.json')))
    .map((name) => ({
      name,
      type: JSON.parse(read(`tests/data/${name}/config.json`)).model_type,
      gguf: existsSync(join(root, 'tests', 'data', 'gguf', `${name}.gguf`)),
    }));

/** Returns every recipe with its names and the golden models that were compared. */
function models() {
  const golden = goldenModels();
  const list = (of) => of.map((model) => model.name).join(', ') || '-';
  const named = new Set(architectures());
  return recipes().map(({ name, also = [] }) => {
    const names = [name, ...also];
    const own = golden.filter(({ type }) => names.includes(type));
    // GGUF may have another architecture name for it, which is then the folder's name.
    const files = golden.filter(
      (model) => model.gguf && names.includes(named.has(model.name) ? model.name : model.type),
    );
    return [code(names), list(own), list(files)];
  });
}

/** Returns the formats that JSON schemas may name; rows in parentheses are parts of others. */
const grammarFormats = () => matches('engine/grammar/formats.inc', /^QSF_FORMAT\("([^("]+)"/gm).flat();

const code = (names) => names.map((name) => `\`${name}\``).join(', ');

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return `\n\n${[line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')}\n\n`;
}

/** The functions that make each list or table, by its name in documents. A list in a table's cell has one line. */
const makers = {
  formats: () => code(formats().map(({ name }) => name)),
  'rounded-formats': () => code(roundedFormats()),
  'formats-table': () =>
    table(
      ['format', 'bits per weight', 'weights in a block'],
      formats().map(({ name, block, bits }) => [`\`${name}\``, String(Number(bits.toFixed(4))), block]),
    ),
  'kv-types': () => code(kvTypes()),
  'instruction-sets': () => [...instructionSets()].map(([where, names]) => `${where}: ${code(names)}`).join('; '),
  'input-kinds': () =>
    inputKinds()
      .map(({ description }) => description)
      .join('; '),
  'input-kinds-table': () =>
    table(
      ['kind', 'what it is'],
      inputKinds().map(({ name, description }) => [`\`${name}\``, description]),
    ),
  architectures: () => code(architectures()),
  models: () => table(['`model_type` or `general.architecture`', 'directories', 'GGUF files'], models()),
  'grammar-formats': () => code(grammarFormats()),
  installation: () => `\n\n${['```sh', ...installation, '```'].join('\n')}\n\n`,
  errors: () => code(readErrors().map(({ name }) => name)),
};

/** Returns `text` with new content between its markers. */
export function filled(path, text = read(path)) {
  const opened = text.match(/<!-- made: /g)?.length ?? 0;
  let closed = 0;
  const made = text.replace(/<!-- made: (\S+) -->[\s\S]*?<!-- end -->/g, (_, name) => {
    closed += 1;
    if (!makers[name]) throw new Stop(`${path}: nothing makes ${name}; there are ${Object.keys(makers).join(', ')}.`);
    return `<!-- made: ${name} -->${makers[name]()}<!-- end -->`;
  });
  if (opened !== closed) throw new Stop(`${path}: a "made" marker is not followed by its "end".`);
  return made;
}

/** The documents that contain such markers. */
export const documents = [
  'README.md',
  'web/README.md',
  'docs/how-to/use-in-a-page.md',
  `${reference}/cli.md`,
  `${reference}/models.md`,
  `${reference}/web.md`,
];
