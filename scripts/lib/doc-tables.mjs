// Lists and tables that documents hold between `<!-- made: NAME -->` and `<!-- end -->`, from the sources that say them.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { readErrors } from '../gen-errors.mjs';
import { Stop, root } from './process.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

/** The groups of every match in a file, at least one. */
function matches(path, pattern) {
  const found = [...read(path).matchAll(pattern)].map(([, ...groups]) => groups);
  if (found.length === 0) throw new Stop(`${path} holds nothing like ${pattern}.`);
  return found;
}

/** Quantization formats: name, weights and bytes of a block. */
export const formats = () =>
  matches('include/qsf/formats/format.h', /^ {4}Format\{[^"]*"([^"]+)", +(\d+), +(\d+),/gm).map(
    ([name, block, bytes]) => ({ name, block: Number(block), bits: (8 * Number(bytes)) / Number(block) }),
  );

/** How keys and values are kept, by the names that users give. */
export const kvTypes = () => matches('include/qsf/base/boundary.def', /^QSF_KV_TYPE\(\w+, "([^"]+)"/gm).flat();

const processors = { x86: 'x86-64', arm: '64-bit ARM', wasm: 'WebAssembly', any: 'anywhere' };

/** Instruction sets by the processors that may have them. */
export function instructionSets() {
  const sets = new Map();
  for (const [name, kind] of matches('cmake/QsfIsas.cmake', /^qsf_isa\((\S+) ([^\s)]+)/gm)) {
    const where = processors[kind.replace(/-.*/, '')];
    sets.set(where, [...(sets.get(where) ?? []), name]);
  }
  return sets;
}

/** What the converter reads. */
export const inputKinds = () =>
  matches('converter/inputs.h', /^ {4}InputKind\{"([^"]+)",\s+"([^"]+)"/gm).map(([name, description]) => ({
    name,
    description,
  }));

/** Those that a source names; what one of them gives way to where there are experts goes by its name. */
const recipes = () => {
  const all = readdirSync(join(root, 'converter', 'recipes'))
    .sort()
    .map((file) => JSON.parse(read(`converter/recipes/${file}`)));
  const isVariant = (recipe) =>
    all.some(({ name, with_experts: other }) => other === recipe.name && name === recipe.like);
  return all.filter((recipe) => !isVariant(recipe));
};

/** Architectures that the converter has a recipe for. */
export const architectures = () => recipes().map(({ name }) => name);

/** Golden models: what config.json calls each, and whether there is a GGUF file of it. */
const goldenModels = () =>
  readdirSync(join(root, 'tests', 'data'))
    .filter((name) => existsSync(join(root, 'tests', 'data', name, 'golden.json')))
    .map((name) => ({
      name,
      type: JSON.parse(read(`tests/data/${name}/config.json`)).model_type,
      gguf: existsSync(join(root, 'tests', 'data', 'gguf', `${name}.gguf`)),
    }));

/** Every recipe with the names that it goes by and the golden models that were compared. */
function models() {
  const golden = goldenModels();
  const list = (of) => of.map((model) => model.name).join(', ') || '-';
  const named = new Set(architectures());
  return recipes().map(({ name, also = [] }) => {
    const names = [name, ...also];
    const own = golden.filter(({ type }) => names.includes(type));
    // GGUF may have another architecture for it, which is then the folder's name.
    const files = golden.filter(
      (model) => model.gguf && names.includes(named.has(model.name) ? model.name : model.type),
    );
    return [code(names), list(own), list(files)];
  });
}

/** Families of chat templates that are recognised, each once. */
export const chatFamilies = () => [
  ...new Set(matches('engine/text/chat_families.inc', /^ {4}(?:\{\.name = |\w+\()"([^"]+)"/gm).flat()),
];

const code = (names) => names.map((name) => `\`${name}\``).join(', ');

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return `\n\n${[line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')}\n\n`;
}

/** Each list or table by its name in documents. One that a table's cell holds is of one line. */
const makers = {
  formats: () => code(formats().map(({ name }) => name)),
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
  'chat-families': () => code(chatFamilies()),
  errors: () => code(readErrors().map(({ name }) => name)),
};

/** `text` with everything between its markers made anew. */
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

/** The documents that have such markers. */
export const documents = ['README.md', 'docs/cli.md', 'docs/models.md'];
