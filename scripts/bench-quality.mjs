#!/usr/bin/env node
// bench-quality.mjs [options]: what types cost a model, on text that it was not trained on and that nothing was tuned on,
// beside llama.cpp's files of the same weights. Leaves JSON in docs/benchmarks/ and writes docs/quality.md and its plot from
// it; --report only writes. --keep goes on with what an earlier run measured.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { readResults, writeResults } from './lib/bench.mjs';
import { buildFolder, buildPreset } from './lib/build.mjs';
import { readGguf } from './lib/gguf.mjs';
import { Stop, main, root } from './lib/process.mjs';
import { layerBits, layersBeside, qualityPage, qualityPlot } from './lib/quality.mjs';

const shared = join(root, '..', 'shared');
const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/stories' },
    text: { type: 'string', default: join(shared, 'model', 'valid.txt') },
    calibration: { type: 'string', default: join(shared, 'data', 'text', 'cs336_tinystories_sample.txt') },
    windows: { type: 'string', default: '60' },
    window: { type: 'string', default: '512' },
    type: { type: 'string', multiple: true },
    way: { type: 'string', multiple: true }, // rounded, searched, calibrated
    bits: { type: 'string', multiple: true }, // of --target-bpw, beside those of llama.cpp's files
    llama: { type: 'string' }, // a folder with llama-quantize and llama-imatrix
    'llama-type': { type: 'string', multiple: true },
    bin: { type: 'string' }, // a folder with qsf-convert and qsf-run; built without it
    keep: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
});

/** A list that '' makes empty. */
const list = (given, usual) => (given ?? usual).filter(Boolean);
const types = list(options.type, '8bit 4bit 3bit 2bit q2_k q3_k q4_k q5_k q6_k q4_0 iq4_nl iq4_xs'.split(' '));
const ways = list(options.way, ['rounded', 'searched', 'calibrated']);
const bits = list(options.bits, ['4.5']);
const llamaTypes = list(
  options['llama-type'],
  (
    'IQ2_XXS IQ2_XS IQ2_S IQ2_M Q2_K_S Q2_K IQ3_XXS IQ3_XS Q3_K_S IQ3_S IQ3_M Q3_K_M Q3_K_L ' +
    'IQ4_XS IQ4_NL Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K'
  ).split(' '),
);
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

/** What a program says, on either output. */
function output(program, args) {
  const made = spawnSync(program, args, { cwd: root, maxBuffer: 1 << 26, encoding: 'utf8' });
  if (made.status !== 0) throw new Stop(`${program} ${args.join(' ')} failed: ${made.stderr ?? made.error}`);
  return made.stdout + made.stderr;
}

/** A figure that a program printed. */
function figure(text, pattern) {
  const found = text.match(pattern);
  return found ? Number(found[1]) : null;
}

const command = 'npm run bench:quality -- --llama FOLDER';

async function measure() {
  for (const file of [options.text, options.calibration]) {
    if (!existsSync(file)) throw new Stop(`There is no ${file}: name a text with --text, and one with --calibration.`);
  }
  if (!options.bin) await buildPreset('release');
  const folder = mkdtempSync(join(tmpdir(), 'qsf-quality-'));
  const bin = (name) => join(options.bin ?? join(buildFolder('release'), 'bin'), name);
  const at = (name) => join(folder, name);
  const count = ['--windows', options.windows, '--window', options.window];
  const convert = (from, to, more) =>
    figure(output(bin('qsf-convert'), [from, to, ...more]), /weights of ([\d.]+) bits/);
  const run = (file, more) => output(bin('qsf-run'), [file, '--perplexity', options.text, ...count, ...more]);
  const name = basename(options.model).replace(/\.(bin|gguf)$/, '');
  const models = readResults('quality')?.models ?? {};
  const rows = options.keep ? (models[name]?.rows ?? []) : [];
  try {
    convert(options.model, at('base.qsf'), ['--quant-type', 'f32']);
    convert(options.model, at('base.gguf'), ['--quant-type', 'f32', '--quiet']);
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
      writeResults('quality', { command, calibrationBytes: statSync(options.calibration).size, models });
      console.log(Object.values(measured).join('  '));
    };
    const choose = (row, target, more = []) => {
      if (known(row)) return;
      const has = convert(options.model, at('q.qsf'), [...flags.calibrated, '--target-bpw', target, ...more]);
      add({ ...row, bits: has, fileBytes: statSync(at('q.qsf')).size }, at('q.qsf'));
    };
    if (options.llama && llamaTypes.length > 0) {
      const llama = (program, args) => output(join(options.llama, program), args);
      llama('llama-imatrix', ['-m', at('base.gguf'), '-f', options.calibration, '-o', at('imatrix.gguf'), '-c', '512']);
      const files = llamaTypes.map((type) => {
        llama('llama-quantize', ['--imatrix', at('imatrix.gguf'), at('base.gguf'), at('l.gguf'), type]);
        const { bytes, fileBytes, tensors } = readGguf(at('l.gguf'));
        const row = { name: type, way: 'llama.cpp', bits: (bytes * 8) / weights, fileBytes };
        if (!known(row)) {
          convert(at('l.gguf'), at('l.qsf'), []);
          add(row, at('l.qsf'));
        }
        return { type, bits: row.bits, tensors };
      });
      const beside = files.find(({ type }) => type === layersBeside);
      const embedding = beside?.tensors.find((tensor) => tensor.name === 'token_embd.weight');
      const type = formatOfGgml[embedding?.type];
      // Rows that its blocks do not divide have other types there.
      if (type && beside.tensors.some((tensor) => formatOfGgml[tensor.type] === 'q2_k')) {
        const norms = beside.tensors.filter((tensor) => tensor.weights === tensor.columns);
        const fixed = [embedding, ...norms];
        const left = fixed.reduce((n, tensor) => n - tensor.weights, weights);
        const all = (fixed.reduce((n, tensor) => n + tensor.bytes, 0) * 8 + layerBits * left) / weights;
        const target = String(Math.floor(all * 1e4) / 1e4);
        choose({ name: `token_embd ${type}, layers ${layerBits}`, way: 'layers', target: Number(target) }, target, [
          '--tensor-type',
          `token_embd=${type}`,
        ]);
      }
      const sizes = new Set(files.map((file) => Math.floor(file.bits * 1e4) / 1e4));
      for (const size of [...sizes].sort((a, b) => a - b)) {
        choose({ name: `--target-bpw ${size}`, way: 'chosen', target: size }, String(size));
      }
    }
    for (const target of bits) choose({ name: `--target-bpw ${target}`, way: 'chosen' }, target);
    for (const type of types) {
      for (const way of ways) {
        if (known({ name: type, way })) continue;
        const has = convert(options.model, at('q.qsf'), ['--quant-type', type, ...flags[way]]);
        add({ name: type, way, bits: has, fileBytes: statSync(at('q.qsf')).size }, at('q.qsf'));
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main(async () => {
  if (!options.report) await measure();
  const result = readResults('quality');
  if (!result) throw new Stop('There are no results in docs/benchmarks/quality.json.');
  writeFileSync(join(root, 'docs', 'quality.md'), qualityPage(result));
  writeFileSync(join(root, 'docs', 'quality.svg'), qualityPlot(result));
});
