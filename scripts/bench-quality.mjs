#!/usr/bin/env node
// bench-quality.mjs [options] measures the loss of each quantization type on text that neither the model nor the
// quantizer has seen, compared with llama.cpp's files of the same weights. It writes quality.json, then quality.md and
// its plot. With --report it only writes; with --keep it continues an earlier run.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { machine, readResults, writeResults } from './lib/bench.mjs';
import { buildFolder, buildQuality } from './lib/build.mjs';
import { readGguf } from './lib/gguf.mjs';
import { Stop, main, root } from './lib/process.mjs';
import { layerBits, layersBeside, qualityPage, qualityPlot } from './lib/quality.mjs';
import { randomLayers, writeRandomLayers } from './lib/random-layers.mjs';
import { inReference, reference } from './lib/reference.mjs';

const shared = join(root, '..', 'shared');
const usualModel = 'models/stories';
const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: usualModel },
    tokenizer: { type: 'string' }, // used if none is next to the model
    text: { type: 'string', default: join(shared, 'model', 'valid.txt') },
    calibration: { type: 'string', default: join(shared, 'data', 'text', 'cs336_tinystories_sample.txt') },
    book: { type: 'string', default: join(shared, 'data', 'text', 'frankenstein.txt') }, // the text for calibration
    windows: { type: 'string', default: '60' },
    window: { type: 'string', default: '512' },
    type: { type: 'string', multiple: true },
    way: { type: 'string', multiple: true }, // rounded, searched, calibrated
    bits: { type: 'string', multiple: true }, // of --target-bpw, in addition to those of llama.cpp's files
    llama: { type: 'string' }, // a folder with llama-quantize and llama-imatrix
    'llama-type': { type: 'string', multiple: true },
    products: { type: 'boolean', default: false }, // only errors of products, of this model and of random ones
    bin: { type: 'string' }, // a folder with qsf-convert and qsf-run; if absent, they are built
    keep: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
});

/** Returns a list; '' makes it empty. */
const list = (given, usual) => (given ?? usual).filter(Boolean);
const types = list(
  options.type,
  '8bit 4bit 3bit 2bit trellis2 trellis3 trellis4 q2_k q3_k q4_k q5_k q6_k q4_0 iq4_nl iq4_xs'.split(' '),
);
const ways = list(options.way, ['rounded', 'searched', 'calibrated']);
const bits = list(options.bits, ['4.5']);
const llamaTypes = list(
  options['llama-type'],
  (
    'IQ2_XXS IQ2_XS IQ2_S IQ2_M Q2_K_S Q2_K IQ3_XXS IQ3_XS Q3_K_S IQ3_S IQ3_M Q3_K_M Q3_K_L ' +
    'IQ4_XS IQ4_NL Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K'
  ).split(' '),
);
/** llama.cpp's types, each with the type here whose bits are nearest. */
const productTypes = [
  ['IQ2_XXS', 'trellis2'],
  ['IQ2_XS', 'q2_k'],
  ['Q2_K', 'q2_k'],
  ['IQ3_XXS', 'trellis3'],
  ['IQ3_S', 'q3_k'],
  ['Q3_K', 'q3_k'],
  ['IQ4_XS', 'trellis4'],
  ['IQ4_XS', 'iq4_xs'],
  ['Q4_K', 'q4_k'],
];
const source = options.tokenizer ? ['--tokenizer', options.tokenizer] : [];
const flags = { rounded: [], searched: ['--search'], calibrated: ['--calibration', options.calibration] };
const formatOfGgml = {
  8: 'q8_0',
  10: 'q2_k',
  11: 'q3_k',
  12: 'q4_k',
  13: 'q5_k',
  14: 'q6_k',
  20: 'iq4_nl',
  23: 'iq4_xs',
};

/** Returns a program's text on both outputs. */
function output(program, args) {
  const made = spawnSync(program, args, { cwd: root, maxBuffer: 1 << 26, encoding: 'utf8' });
  if (made.status !== 0) throw new Stop(`${program} ${args.join(' ')} failed: ${made.stderr ?? made.error}`);
  return made.stdout + made.stderr;
}

/** Returns a figure that a program printed. */
function figure(text, pattern) {
  const found = text.match(pattern);
  return found ? Number(found[1]) : null;
}

const command = 'npm run bench:quality -- --llama FOLDER';

const bin = (name) => join(options.bin ?? join(buildFolder('release'), 'bin'), name);

/** Makes a folder and removes it after `body` has used it. */
async function inFolder(body) {
  for (const option of ['text', 'calibration', 'book']) {
    if (!existsSync(options[option])) throw new Stop(`There is no ${options[option]}: name a text with --${option}.`);
  }
  if (!options.bin) await buildQuality();
  const folder = mkdtempSync(join(tmpdir(), 'qsf-quality-'));
  try {
    await body((name) => join(folder, name));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const llama = (program, args) => output(join(options.llama, program), args);
const importance = (model, text, to) => llama('llama-imatrix', ['-m', model, '-f', text, '-o', to, '-c', '512']);

/** Writes the first paragraphs of a text, about 40 KB, to a file. */
function part(text, to) {
  const whole = readFileSync(text, 'utf8').slice(0, 40_000);
  writeFileSync(to, whole.slice(0, whole.lastIndexOf('\n') + 1));
  return to;
}

/** Measures the loss of layers' products by type, for a model and for two with random weights. */
function measureProducts(at) {
  if (!options.llama) throw new Stop('Name the folder of llama-quantize with --llama.');
  const name = basename(options.model).replace(/\.(bin|gguf)$/, '');
  const products = { machine: machine(), types: productTypes.map(([theirs, ours]) => ({ theirs, ours })), models: {} };
  const text = part(options.text, at('text.txt'));
  const calibration = part(options.book, at('book.txt'));
  const own = [...new Set(productTypes.map(([, type]) => type))];
  for (const model of [name, ...randomLayers]) {
    const from = model === name ? options.model : at(model);
    if (model !== name) writeRandomLayers(model, from);
    const tokens = model === name ? source : [];
    output(bin('qsf-convert'), [from, at('base.gguf'), ...tokens, '--quant-type', 'f32', '--quiet']);
    importance(at('base.gguf'), calibration, at('imatrix.gguf'));
    const theirs = productTypes.map(([type]) => {
      const pure = ['--pure', '--token-embedding-type', 'f16', '--imatrix', at('imatrix.gguf')];
      llama('llama-quantize', [...pure, at('base.gguf'), at(`llama-${type}.gguf`), type]);
      return at(`llama-${type}.gguf`);
    });
    const ours = own.map((type) => {
      const form = ['--quant-type', type, '--tensor-type', 'token_embd=f16', '--quiet'];
      const same = ['--calibration', calibration, '--own-tokens', '0'];
      output(bin('qsf-convert'), [from, at(`${type}.qsf`), ...tokens, ...form, ...same]);
      return at(`${type}.qsf`);
    });
    const lines = output(bin('product-errors'), [at('base.gguf'), text, ...theirs, ...ours])
      .trim()
      .split('\n');
    /** Returns the bits of the layers' matrices in a file, and the mean loss of their products. */
    const layersOf = (file) => {
      const fields = lines.map((line) => line.split('\t'));
      const layers = fields.filter(([of, section, role]) => of === file && section !== '0' && role !== 'head');
      const error = layers.reduce((sum, [, , , lost, whole]) => sum + lost / whole / layers.length, 0);
      const matrices = file.endsWith('.qsf')
        ? layers.map(([, , , , , bytes, weights]) => ({ bytes: Number(bytes), weights: Number(weights) }))
        : readGguf(file).tensors.filter(
            (tensor) => /^blk.*weight$/.test(tensor.name) && tensor.weights > tensor.columns,
          );
      const sum = (key) => matrices.reduce((total, tensor) => total + tensor[key], 0);
      return { bits: (sum('bytes') * 8) / sum('weights'), error };
    };
    products.models[model] = {
      theirs: theirs.map(layersOf),
      ours: Object.fromEntries(own.map((type, i) => [type, layersOf(ours[i])])),
    };
    console.log(JSON.stringify(products.models[model]));
  }
  writeResults('quality', { ...(readResults('quality') ?? { models: {} }), products });
}

function measure(at) {
  const count = ['--windows', options.windows, '--window', options.window];
  const convert = (from, to, more) =>
    figure(output(bin('qsf-convert'), [from, to, ...more]), /weights of ([\d.]+) bits/);
  const run = (file, more) => output(bin('qsf-run'), [file, '--perplexity', options.text, ...count, ...more]);
  const name = basename(options.model).replace(/\.(bin|gguf)$/, '');
  const { models = {}, products } = readResults('quality') ?? {};
  const rows = options.keep ? (models[name]?.rows ?? []) : [];
  convert(options.model, at('base.gguf'), [...source, '--quant-type', 'f32', '--quiet']);
  const convertModel = (to, more) => convert(at('base.gguf'), to, more); // without data that GGUF lacks
  convertModel(at('base.qsf'), ['--quant-type', 'f32']);
  const { weights } = readGguf(at('base.gguf'));
  const base = run(at('base.qsf'), ['--save-logits', at('base')]);
  models[name] = {
    windows: Number(options.windows),
    window: Number(options.window),
    weights,
    counted: figure(base, /(\d+) counted/),
    perplexity: figure(base, /perplexity +([\d.e+]+)/),
    error: figure(base, /\+\/- ([\d.e+]+)/),
    rows,
  };
  const known = ({ name, way }) => rows.some((other) => other.name === name && other.way === way);
  const add = (row, file) => {
    const text = run(file, ['--kl', at('base')]);
    const measured = {
      ...row,
      perplexity: figure(text, /perplexity +([\d.e+]+)/),
      divergence: figure(text, /divergence +([\d.e+-]+) mean/),
      at99: figure(text, /, ([\d.e+-]+) at 99 %/),
      sameTop: figure(text, /same top +([\d.]+)/),
    };
    rows.push(measured);
    writeResults('quality', { command, calibrationBytes: statSync(options.calibration).size, models, products });
    console.log(Object.values(measured).join('  '));
  };
  const choose = (row, size, more = []) => {
    if (known(row)) return;
    const losses = ['--losses', at('losses.json')];
    const has = convertModel(at('q.qsf'), [...flags.calibrated, ...losses, ...size, ...more].map(String));
    add({ ...row, bits: has, fileBytes: statSync(at('q.qsf')).size }, at('q.qsf'));
  };
  if (options.llama && llamaTypes.length > 0) {
    importance(at('base.gguf'), options.calibration, at('imatrix.gguf'));
    const files = llamaTypes.map((type) => {
      llama('llama-quantize', ['--imatrix', at('imatrix.gguf'), at('base.gguf'), at('l.gguf'), type]);
      const { bytes, fileBytes, tensors } = readGguf(at('l.gguf'));
      const row = { name: type, way: 'llama.cpp', bits: (bytes * 8) / weights, fileBytes };
      if (!known(row)) {
        convert(at('l.gguf'), at('l.qsf'), []);
        add(row, at('l.qsf'));
      }
      return { type, bits: row.bits, bytes, tensors };
    });
    const beside = files.find(({ type }) => type === layersBeside);
    const embedding = beside?.tensors.find((tensor) => tensor.name === 'token_embd.weight');
    const type = formatOfGgml[embedding?.type];
    if (type && options.model === usualModel) {
      const norms = beside.tensors.filter((tensor) => tensor.weights === tensor.columns);
      const fixed = [embedding, ...norms];
      const left = fixed.reduce((n, tensor) => n - tensor.weights, weights);
      const all = (fixed.reduce((n, tensor) => n + tensor.bytes, 0) * 8 + layerBits * left) / weights;
      const target = Math.floor(all * 1e4) / 1e4;
      choose(
        { name: `token_embd ${type}, layers ${layerBits}`, way: 'layers', target },
        ['--target-bpw', target],
        ['--tensor-type', `token_embd=${type}`],
      );
    }
    // The comparison is exact to the byte, because a tensor in the next larger type may just fit.
    for (const { bits: has, bytes } of files.sort((a, b) => a.bytes - b.bytes)) {
      const target = Math.floor(has * 1e4) / 1e4;
      choose({ name: `--target-bpw ${target}`, way: 'chosen', target }, ['--target-size', (bytes + 0.5) / 1e6]);
    }
  }
  for (const target of bits) choose({ name: `--target-bpw ${target}`, way: 'chosen' }, ['--target-bpw', target]);
  for (const type of types) {
    for (const way of ways) {
      if (known({ name: type, way })) continue;
      const has = convertModel(at('q.qsf'), ['--quant-type', type, ...flags[way]]);
      add({ name: type, way, bits: has, fileBytes: statSync(at('q.qsf')).size }, at('q.qsf'));
    }
  }
}

await main(async () => {
  if (!options.report) {
    await inFolder((at) => {
      if (!options.products) measure(at);
      if (options.products || (options.llama && options.model === usualModel)) measureProducts(at);
    });
  }
  const result = readResults('quality');
  if (!result) throw new Stop(`There is no ${reference}/benchmarks/quality.json.`);
  writeFileSync(inReference('quality.md'), qualityPage(result));
  writeFileSync(inReference('quality.svg'), qualityPlot(result));
});
