// The same bits everywhere: every instruction set of the native, ARM and WebAssembly builds, in every way of running,
// gives the same logits and tokens for a model of every architecture and weight format.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const program = 'logits-hash';
// In Node 20 relaxed SIMD is an experiment, and its baseline compiler (Liftoff) computes the relaxed dot wrongly.
const node = [process.execPath, '--experimental-wasm-relaxed-simd', '--no-liftoff'];

const table = readFileSync(join(root, 'cmake', 'QsfIsas.cmake'), 'utf8');
/** The instruction sets in the build's table that these processors have. */
const isasOf = (...processors: string[]) =>
  [...table.matchAll(/^qsf_isa\((\S+) ([^\s)]+)/gm)].flatMap(([, name = '', processor = '']) =>
    processors.includes(processor) ? [name] : [],
  );

const native = { name: 'native', command: [join(root, 'build', 'bin', program)], isas: isasOf('any') };

/** Each build's program, and the instruction sets that it must have run. */
const builds = [
  native,
  { name: 'native, by Clang', command: [join(root, 'build-clang', 'bin', program)], isas: isasOf('any') },
  {
    name: 'ARM under qemu',
    command: ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', join(root, 'build-aarch64', 'bin', program)],
    isas: isasOf('any', 'arm'),
  },
  {
    name: 'WebAssembly with SIMD',
    command: [...node, join(root, 'build-wasm-simd', 'bin', `${program}.js`)],
    isas: isasOf('any', 'wasm'),
  },
  {
    name: 'WebAssembly with relaxed SIMD',
    command: [...node, join(root, 'build-wasm-relaxed', 'bin', `${program}.js`)],
    isas: isasOf('any', 'wasm', 'wasm-relaxed'),
  },
];

const fixtures = [
  'llama',
  'llama3-rope',
  'mistral',
  'qwen2',
  'qwen3',
  'qwen3-moe',
  'gpt-oss',
  'lfm2',
  'qwen3.5',
  'granite-hybrid',
];
const models = [
  ...fixtures.map((name) => ({ name, quantType: '8bit' })),
  ...['f32', 'f16', '4bit'].map((quantType) => ({ name: 'llama', quantType })),
];

interface Golden {
  prompts: { ids: number[] }[];
}

interface Line {
  isa: string;
  kv: string;
  result: string;
}

/** What one build prints, one line for each way of running. */
function lines(command: string[], model: string, ids: number[]): Line[] {
  const [file = '', ...before] = command;
  const text = execFileSync(file, [...before, model, ids.join(','), '4'], { encoding: 'utf8' });
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [isa = '', kv = '', , hash = '', tokens = ''] = line.split(' ');
      return { isa, kv, result: `${hash} ${tokens}` };
    });
}

describe.each(models)('$name at $quantType', ({ name, quantType }) => {
  const folder = join(root, 'build', 'parity');
  const model = join(folder, `${name}-${quantType}.qsf`);
  const source = join(root, 'tests', 'data', name);
  const golden = JSON.parse(readFileSync(join(source, 'golden.json'), 'utf8')) as Golden;
  const ids = (golden.prompts[0]?.ids ?? []).slice(0, 37);
  const expected = new Map<string, string>();

  beforeAll(() => {
    mkdirSync(folder, { recursive: true });
    const convert = join(root, 'build', 'bin', 'qsf-convert');
    execFileSync(convert, [source, model, '--quant-type', quantType], { stdio: 'ignore' });
    for (const { isa, kv, result } of lines(native.command, model, ids)) {
      if (isa === 'scalar' && !expected.has(kv)) expected.set(kv, result);
    }
  });

  it.each(builds)('is the same: $name', ({ command, isas }) => {
    const seen = lines(command, model, ids);
    expect(seen.map(({ isa }) => isa)).toEqual(expect.arrayContaining(isas));
    expect(new Set(seen.map(({ kv }) => kv)).size).toBe(5);
    for (const { isa, kv, result } of seen)
      expect(`${isa} ${kv} ${result}`).toBe(`${isa} ${kv} ${expected.get(kv) ?? ''}`);
  });
});
