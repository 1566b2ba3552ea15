/// <reference lib="dom" />
// The same embeddings everywhere: those of a page's engine have the bits of the native program's.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { beforeAll, describe, expect, it } from 'vitest';

import { poolings } from '../../web/src/boundary.gen.js';
import { Engine } from '../../web/src/engine.js';
import { EngineInstance } from '../../web/src/engine-instance.js';

const root = join(import.meta.dirname, '..', '..');
const folder = join(root, 'build', 'parity');
const MiB = 1024 * 1024;
const PAGE = 65_536;
const BUDGET = 8 * MiB;

interface Golden {
  prompts: { ids: number[] }[];
}

async function create(): Promise<Engine> {
  // The module is made for workers, which have an address.
  Object.assign(globalThis, { self: { location: { href: 'https://page.test/' } } });
  const name = join(root, 'build-wasm-relaxed', 'bin', 'qsf-simd'); // Node 20 has no relaxed SIMD by itself
  const { default: load } = (await import(/* @vite-ignore */ pathToFileURL(`${name}.js`).href)) as {
    default: typeof import('../../web/src/engine-module.js').default;
  };
  const wasmMemory = new WebAssembly.Memory({ initial: BUDGET / PAGE, maximum: BUDGET / PAGE });
  const module = await load({ wasmMemory, threads: 1, wasmBinary: readFileSync(`${name}.wasm`) });
  return new Engine('simd', 1, new EngineInstance(module, wasmMemory, 1), wasmMemory);
}

/** Steps until the engine tells something; feeds what is asked for. */
function advance(engine: Engine, file: Uint8Array): string {
  for (;;) {
    const step = engine.step();
    for (let request = engine.nextRequest(); request; request = engine.nextRequest()) {
      engine.target(request).set(file.subarray(request.offset, request.offset + request.size));
      engine.complete(request.ticket);
    }
    if (step === 'error') throw engine.error();
    if (step !== 'working' && step !== 'need_bytes') return step;
  }
}

describe.each(['bert', 'modernbert', 'gemma-embedding', 'qwen3-embedding'])('%s', (name) => {
  const data = join(root, 'tests', 'data', name);
  const model = join(folder, `${name}-embedding.qsf`);
  const { prompts } = JSON.parse(readFileSync(join(data, 'golden.json'), 'utf8')) as Golden;
  const ids = prompts[0]?.ids ?? [];
  const native = new Map<string, Float32Array>();

  beforeAll(() => {
    mkdirSync(folder, { recursive: true });
    const program = (tool: string) => join(root, 'build', 'bin', tool);
    execFileSync(program('qsf-convert'), [data, model, '--quant-type', '8bit'], { stdio: 'ignore' });
    for (const pooling of poolings) {
      const out = join(folder, `${name}-${pooling}.f32`);
      rmSync(out, { force: true });
      const how = ['--embed', '--pooling', pooling, '--tokens', ids.join(','), '--logits', out];
      execFileSync(program('qsf-run'), [model, ...how], { stdio: 'ignore' });
      native.set(pooling, new Float32Array(Uint8Array.from(readFileSync(out)).buffer));
    }
  });

  it('has the same bits in WebAssembly', async () => {
    const file = readFileSync(model);
    const engine = await create();
    const planned = { maxSeqLen: 128, sequences: 1, chunk: 0, ringSlots: 0, readRate: 0, computeRate: 0 };
    engine.open({
      ...planned,
      ...{ fileSize: file.length, kv: undefined, streamAll: true, recheck: false, allLogits: false },
    });
    expect(advance(engine, file)).toBe('ready');
    for (const pooling of poolings) {
      engine.embed(Uint32Array.from(ids), { pooling, normalize: undefined, addBos: true, special: true });
      const values: number[] = [];
      for (let step = advance(engine, file); step !== 'done'; step = advance(engine, file)) {
        if (step === 'embedding') values.push(...engine.embedding());
      }
      expect(Float32Array.from(values), pooling).toEqual(native.get(pooling));
    }
    engine.close();
  });
});
