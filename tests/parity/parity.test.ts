// The same bits everywhere: every instruction set of the native, ARM and WebAssembly builds, in every way of running,
// gives the same logits and tokens for a model of every architecture and weight format.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { beforeAll, describe, expect, it } from 'vitest';

const execute = promisify(execFile);
/** Runs a command that may have arguments of its own. */
const runs = ([file = '', ...before]: string[], ...more: string[]) => execute(file, [...before, ...more]);
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

/** The command of a program of the Windows build. */
const underWine = (name: string) => [
  'env',
  'WINEDEBUG=-all',
  `WINEPREFIX=${join(root, 'build-windows', 'wine')}`,
  '/usr/lib/wine/wine64',
  join(root, 'build-windows', 'bin', `${name}.exe`),
];

/** A build's program, the instruction sets that it must have run, and whether it is much slower than the others. */
interface Build {
  name: string;
  command: string[];
  isas: string[];
  slow?: boolean;
  /** Whether its own tests compare the other models with golden values. */
  few?: boolean;
}

const builds: Build[] = [
  native,
  {
    name: 'native, by Clang, sanitized',
    command: [join(root, 'build-asan', 'bin', program)],
    isas: isasOf('any'),
    slow: true,
    few: true,
  },
  {
    name: 'ARM under qemu',
    command: ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', join(root, 'build-aarch64', 'bin', program)],
    isas: isasOf('any', 'arm'),
    slow: true,
  },
  { name: 'Windows under wine', command: underWine(program), isas: isasOf('any'), slow: true },
  {
    name: 'WebAssembly',
    command: [...node, join(root, 'build-wasm', 'bin', `${program}.js`)],
    isas: isasOf('any', 'wasm'),
  },
];

interface Golden {
  prompts: { ids: number[]; greedy?: number[] }[];
}

const data = join(root, 'tests', 'data');
const golden = (name: string) => JSON.parse(readFileSync(join(data, name, 'golden.json'), 'utf8')) as Golden;
/** Every model of tests/data that generates. */
const generating = readdirSync(data).filter(
  (name) => existsSync(join(data, name, 'golden.json')) && golden(name).prompts[0]?.greedy !== undefined,
);
/** Those whose ops are all those of others, so that their golden values, compared natively, are enough. */
const recipesOnly = [
  ...[
    'arcee',
    'bailing-moe',
    'bailing-moe-v2',
    'bamba',
    'bloom',
    'deepseek-v2',
    'dots1',
    'ernie4_5-moe',
    'exaone-moe',
    'gemma',
    'glm4-moe',
  ],
  ...['glm4-moe-lite', 'gptj', 'granitemoeshared'],
  ...[
    'helium',
    'hunyuan-moe',
    'internlm2',
    'internlm3',
    'mamba2',
    'minicpm',
    'minicpm3',
    'minimax-m2',
    'mpt',
    'nemotron',
    'olmo3',
    'qwen2-moe',
    'seed-oss',
    'solar-open',
  ],
];
const architectures = generating.filter((name) => !recipesOnly.includes(name));
/**
 * Those that the native build and WebAssembly run in every way. Of others each instruction set runs once, and slow builds
 * run one model in every way. The ways differ in code that no processor has for itself, tests of the engine run them for
 * every mixer, and the committed hashes of kernels cover their shapes.
 */
const everywhere = [
  ...['llama', 'llama3-rope', 'mistral', 'qwen2', 'qwen3'],
  ...['qwen3-moe', 'gpt-oss', 'lfm2', 'qwen3.5', 'granite-hybrid'],
];
const models = [
  ...architectures.map((name) => ({
    name,
    quantType: '8bit',
    all: everywhere.includes(name),
    slowly: name === 'llama',
  })),
  ...['f32', 'f16', '4bit'].map((quantType) => ({ name: 'llama', quantType, all: true, slowly: false })),
];
const kvTypes = 8;
const onlyWay = 'planned';

interface Line {
  isa: string;
  kv: string;
  result: string;
}

/** What one build prints, one line for each way of running. */
async function lines(command: string[], model: string, ids: number[], way?: string): Promise<Line[]> {
  const { stdout } = await runs(command, model, ids.join(','), '4', ...(way ? [way] : []));
  return stdout
    .trim()
    .split(/\r?\n/)
    .map((line) => {
      const [isa = '', kv = '', , hash = '', tokens = ''] = line.split(' ');
      return { isa, kv, result: `${hash} ${tokens}` };
    });
}

it('every architecture is there', () => {
  expect(generating).toEqual(expect.arrayContaining([...everywhere, ...recipesOnly]));
});

describe.each(models)('$name at $quantType', ({ name, quantType, all, slowly }) => {
  const folder = join(root, 'build', 'parity');
  const model = join(folder, `${name}-${quantType}.qsf`);
  const ids = (golden(name).prompts[0]?.ids ?? []).slice(0, 37);
  const expected = new Map<string, string>();

  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    const convert = join(root, 'build', 'bin', 'qsf-convert');
    await runs([convert], join(data, name), model, '--quant-type', quantType);
    for (const { isa, kv, result } of await lines(native.command, model, ids, all ? undefined : onlyWay)) {
      if (isa === 'scalar' && !expected.has(kv)) expected.set(kv, result);
    }
  });

  it.concurrent.each(builds.filter(({ few }) => all || !few))('is the same: $name', async ({ command, isas, slow }) => {
    const whole = slow ? slowly : all;
    const seen = await lines(command, model, ids, whole ? undefined : onlyWay);
    expect(seen.map(({ isa }) => isa)).toEqual(expect.arrayContaining(isas));
    expect(new Set(seen.map(({ kv }) => kv)).size).toBe(whole ? kvTypes : 1);
    for (const { isa, kv, result } of seen)
      expect(`${isa} ${kv} ${result}`).toBe(`${isa} ${kv} ${expected.get(kv) ?? ''}`);
  });

  if (!all) return;
  it.concurrent('is converted to the same bytes under wine', async () => {
    const converted = join(folder, `${name}-${quantType}-windows.qsf`);
    await runs(underWine('qsf-convert'), join(data, name), converted, '--quant-type', quantType);
    expect(readFileSync(converted).equals(readFileSync(model))).toBe(true);
  });
});
