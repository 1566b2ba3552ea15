#!/usr/bin/env node
// bench-quality.mjs [options]: what each type costs the built-in model, on text that it was not trained on and that nothing
// was tuned on. Leaves JSON in docs/benchmarks/ and writes docs/quality.md and its plot from it; --report only writes.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { readResults, writeResults } from './lib/bench.mjs';
import { buildFolder, buildPreset } from './lib/build.mjs';
import { Stop, main, root } from './lib/process.mjs';
import { qualityPage, qualityPlot } from './lib/quality.mjs';

const shared = join(root, '..', 'shared');
const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/stories' },
    text: { type: 'string', default: join(shared, 'model', 'valid.txt') },
    calibration: { type: 'string', default: join(shared, 'data', 'text', 'cs336_tinystories_sample.txt') },
    windows: { type: 'string', default: '60' },
    type: { type: 'string', multiple: true },
    way: { type: 'string', multiple: true }, // rounded, searched, calibrated
    bits: { type: 'string', multiple: true }, // of --target-bpw
    llama: { type: 'string' }, // a folder with llama-quantize and llama-imatrix
    'llama-type': { type: 'string', multiple: true },
    bin: { type: 'string' }, // a folder with qsf-convert and qsf-run; built without it
    report: { type: 'boolean', default: false },
  },
});

const types = options.type ?? [
  '8bit',
  '4bit',
  '3bit',
  '2bit',
  'q2_k',
  'q3_k',
  'q4_k',
  'q5_k',
  'q6_k',
  'q4_0',
  'iq4_nl',
];
const ways = options.way ?? ['rounded', 'searched', 'calibrated'];
const bits = (options.bits ?? ['2.51', '3.02', '3.82', '4.5', '4.97']).filter(Boolean); // --bits '' for none
const llamaTypes = options['llama-type'] ?? [
  'IQ2_XXS',
  'IQ2_M',
  'Q2_K',
  'IQ3_S',
  'Q3_K_M',
  'IQ4_XS',
  'Q4_K_M',
  'Q5_K_M',
];
const flags = { rounded: [], searched: ['--search'], calibrated: ['--calibration', options.calibration] };

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

async function measure() {
  for (const file of [options.text, options.calibration]) {
    if (!existsSync(file)) throw new Stop(`There is no ${file}: name a text with --text, and one with --calibration.`);
  }
  if (!options.bin) await buildPreset('release');
  const folder = mkdtempSync(join(tmpdir(), 'qsf-quality-'));
  const bin = (name) => join(options.bin ?? join(buildFolder('release'), 'bin'), name);
  const at = (name) => join(folder, name);
  const count = ['--windows', options.windows];
  const convert = (from, to, more) =>
    figure(output(bin('qsf-convert'), [from, to, ...more]), /weights of ([\d.]+) bits/);
  const run = (file, more) => output(bin('qsf-run'), [file, '--perplexity', options.text, ...count, ...more]);
  const rows = [];
  try {
    convert(options.model, at('base.qsf'), ['--quant-type', 'f32']);
    const base = run(at('base.qsf'), ['--save-logits', at('base')]);
    const result = {
      command: 'npm run bench:quality',
      model: options.model,
      windows: Number(options.windows),
      counted: figure(base, /(\d+) counted/),
      perplexity: figure(base, /perplexity +([\d.e+]+)/),
      error: figure(base, /\+\/- ([\d.e+]+)/),
      calibrationBytes: statSync(options.calibration).size,
      rows,
    };
    const add = (name, way, bitsPerWeight, file) => {
      const text = run(file, ['--kl', at('base')]);
      rows.push({
        name,
        way,
        bits: bitsPerWeight,
        perplexity: figure(text, /perplexity +([\d.e+]+)/),
        divergence: figure(text, /divergence +([\d.e+-]+) mean/),
        at99: figure(text, /, ([\d.e+-]+) at 99 %/),
        sameTop: figure(text, /same top +([\d.]+)/),
      });
      writeResults('quality', result);
      console.log(Object.values(rows.at(-1)).join('  '));
    };
    for (const target of bits) {
      const has = convert(options.model, at('q.qsf'), [...flags.calibrated, '--target-bpw', target]);
      add(`--target-bpw ${target}`, 'chosen', has, at('q.qsf'));
    }
    if (options.llama) {
      const llama = (name, args) => output(join(options.llama, name), args);
      convert(options.model, at('base.gguf'), ['--quant-type', 'f32']);
      llama('llama-imatrix', ['-m', at('base.gguf'), '-f', options.calibration, '-o', at('imatrix.gguf'), '-c', '512']);
      for (const type of llamaTypes) {
        const told = llama('llama-quantize', ['--imatrix', at('imatrix.gguf'), at('base.gguf'), at('l.gguf'), type]);
        convert(at('l.gguf'), at('l.qsf'), []);
        add(type, 'llama.cpp', figure(told, /quant size[^\n]*\(([\d.]+) BPW\)/), at('l.qsf'));
      }
    }
    for (const type of types) {
      for (const way of ways) {
        add(type, way, convert(options.model, at('q.qsf'), ['--quant-type', type, ...flags[way]]), at('q.qsf'));
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
