/// <reference lib="dom" />
// Several models in one WebAssembly module: each instance computes as if it were alone, and leaves its memory to others.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { beforeAll, expect, it } from 'vitest';

import { steps } from '../../web/src/boundary.gen.js';
import { EngineInstance } from '../../web/src/engine-instance.js';
import type { EngineModule } from '../../web/src/engine-module.js';

const root = join(import.meta.dirname, '..', '..');
const MiB = 1024 * 1024;
/** Less than the model's weights, so that instances stream through rings of their own. */
const BUDGET = 4 * MiB;
/** For the module, and so that two instances fit and three do not. */
const MEMORY = 10 * MiB;

let file: Uint8Array;
let memory: WebAssembly.Memory;
let module: EngineModule;

beforeAll(async () => {
  const folder = join(root, 'build', 'parity');
  mkdirSync(folder, { recursive: true });
  const out = join(folder, 'stories-8bit.qsf');
  const convert = join(root, 'build', 'bin', 'qsf-convert');
  execFileSync(convert, [join(root, 'models', 'stories'), out, '--quant-type', '8bit'], { stdio: 'ignore' });
  file = readFileSync(out);

  // The module is made for workers, which have an address.
  Object.assign(globalThis, { self: { location: { href: 'https://page.test/' } } });
  const name = join(root, 'build-wasm-relaxed', 'bin', 'qsf-simd');
  const { default: create } = (await import(/* @vite-ignore */ pathToFileURL(`${name}.js`).href)) as {
    default: typeof import('../../web/src/engine-module.js').default;
  };
  memory = new WebAssembly.Memory({ initial: MEMORY / 65_536, maximum: MEMORY / 65_536 });
  module = await create({ wasmMemory: memory, threads: 1, wasmBinary: readFileSync(`${name}.wasm`) });
});

/** Steps once and feeds what is asked for; tells what the step was. */
function step(instance: EngineInstance): (typeof steps)[number] {
  const name = steps[instance.step()]!;
  for (let r = instance.nextRequest(); r; r = instance.nextRequest()) {
    new Uint8Array(memory.buffer, r.into, r.size).set(file.subarray(r.offset, r.offset + r.size));
    expect(instance.complete(r.ticket), instance.sentence()).toBe(0);
  }
  if (name === 'error') throw new Error(instance.sentence());
  return name;
}

function open(instance: EngineInstance): number {
  const code = instance.open({
    ...{ budget: BUDGET, fileSize: file.length, kv: -1, maxSeqLen: 0, sequences: 1, chunk: 0, ringSlots: 0 },
    ...{ streamAll: false, recheck: false, allLogits: false, readRate: 0, computeRate: 0 },
  });
  while (code === 0 && step(instance) !== 'ready');
  return code;
}

function start(instance: EngineInstance, prompt: number[], seed: number): void {
  expect(instance.stage([new Uint8Array(Uint32Array.from(prompt).buffer)])).toBe(true);
  const code = instance.start(
    {
      ...{ textSize: 0, nTokens: prompt.length, stopsSize: 0 },
      ...{ temperature: 0.8, topK: 40, topP: 0.9, repetitionPenalty: 1, seed },
      ...{
        maxTokens: 12,
        addBos: true,
        special: true,
        ignoreEos: true,
        logitsHash: true,
        allLogits: false,
        logitsFrom: 0,
      },
    },
    0,
  );
  expect(code, instance.sentence()).toBe(0);
}

const prompts = [
  [5, 6, 7, 8],
  [300, 200, 100, 50, 25, 12],
];

/** Runs generations side by side, a step of each in turn; gives what each made. */
function run(instances: EngineInstance[]): { tokens: number[]; hash: string; asked: number }[] {
  const made = instances.map((instance, i) => {
    start(instance, prompts[i % 2]!, i % 2);
    return { tokens: [] as number[], hash: '', asked: 0 };
  });
  const running = new Set(instances.keys());
  while (running.size > 0) {
    for (const i of running) {
      const name = step(instances[i]!);
      if (name === 'token') made[i]!.tokens.push(instances[i]!.token());
      if (name !== 'done') continue;
      made[i]!.hash = instances[i]!.logitsHash(0);
      made[i]!.asked = instances[i]!.stats().bytesRead;
      running.delete(i);
    }
  }
  return made;
}

it('two instances side by side compute what each computes alone', () => {
  const alone = prompts.map((_, i) => {
    const instance = new EngineInstance(module, memory, 1);
    expect(open(instance)).toBe(0);
    start(instance, prompts[i]!, i);
    const tokens: number[] = [];
    for (let name = step(instance); name !== 'done'; name = step(instance)) {
      if (name === 'token') tokens.push(instance.token());
    }
    const made = { tokens, hash: instance.logitsHash(0), asked: instance.stats().bytesRead };
    instance.delete();
    return made;
  });
  expect(alone[0]!.hash).not.toBe(alone[1]!.hash);

  const two = [new EngineInstance(module, memory, 1), new EngineInstance(module, memory, 1)];
  for (const instance of two) expect(open(instance)).toBe(0);
  expect(run(two)).toEqual(alone);

  // A failure of one is none of the other's.
  expect(two[0]!.rewind(1_000_000, 0)).not.toBe(0);
  expect(two[0]!.sentence()).toMatch(/1000000/);
  expect(two[1]!.sentence()).toBe('');

  // There is no room for a third until one is gone.
  const third = new EngineInstance(module, memory, 1);
  expect(open(third)).not.toBe(0);
  two[0]!.delete();
  expect(open(third)).toBe(0);
  expect(run([third])[0]).toMatchObject({ tokens: alone[0]!.tokens, hash: alone[0]!.hash });
  for (const instance of [third, two[1]!]) instance.delete();
});
