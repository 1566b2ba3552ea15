// The same embeddings everywhere: those of a page's engine have the bits of the native program's.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { openOptions, poolings } from '../../web/src/boundary.gen.js';
import { checkOptions } from '../../web/src/page/options.js';
import { Engine } from '../../web/src/wasm/engine.js';
import { convert, folder, program, startModule } from './module.js';

const BUDGET = 8 * 1024 * 1024;

interface Golden {
  prompts: { ids: number[] }[];
}

async function create(): Promise<Engine> {
  const { module, memory } = await startModule(BUDGET);
  return new Engine('simd', 1, new module.Session(1, false), memory);
}

/** Steps until the engine tells something; feeds what is asked for. */
function advance(engine: Engine, file: Uint8Array): string {
  for (;;) {
    const step = engine.session.step();
    for (let request = engine.session.nextRequest(); request; request = engine.session.nextRequest()) {
      engine.target(request).set(file.subarray(request.offset, request.offset + request.size));
      engine.complete(request.ticket);
    }
    if (step === 'error') throw engine.error();
    if (step !== 'working' && step !== 'need_bytes') return step;
  }
}

describe.each(['bert', 'modernbert', 'mpnet', 'gemma-embedding', 'qwen3-embedding'])('%s', (name) => {
  const data = join('tests', 'data', name);
  const golden = join(import.meta.dirname, '..', '..', data, 'golden.json');
  const { prompts } = JSON.parse(readFileSync(golden, 'utf8')) as Golden;
  const ids = prompts[0]?.ids ?? [];
  const native = new Map<string, Float32Array>();
  let model = '';

  beforeAll(() => {
    model = convert(data, `${name}-embedding.qsf`);
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
    engine.open({
      ...checkOptions(openOptions, { maxSeqLen: 128, streamAll: true }),
      ...{ fileSize: file.length, vouched: false, kv: undefined },
    });
    expect(advance(engine, file)).toBe('ready');
    for (const pooling of poolings) {
      engine.embed(Uint32Array.from(ids), { pooling, normalize: undefined, addBos: true, special: true }, 0);
      const values: number[] = [];
      for (let step = advance(engine, file); step !== 'done'; step = advance(engine, file)) {
        if (step === 'embedding') values.push(...engine.session.embedding());
      }
      expect(Float32Array.from(values), pooling).toEqual(native.get(pooling));
    }
    engine.session.close();
  });
});

describe.each(['bert-reranker', 'modernbert-reranker', 'qwen3-reranker'])('%s', (name) => {
  it('has the same bits in WebAssembly', async () => {
    const data = join('tests', 'data', name);
    const golden = join(import.meta.dirname, '..', '..', data, 'scores.json');
    const { query, documents } = JSON.parse(readFileSync(golden, 'utf8')) as { query: string; documents: string[] };
    const model = convert(data, `${name}.qsf`);
    const lines = execFileSync(program('qsf-run'), [model, '--rerank', query], { input: documents.join('\n') });
    const native = new Map(
      lines
        .toString()
        .trim()
        .split('\n')
        .map((line) => line.split('\t'))
        .map(([score, at]) => [Number(at) - 1, Math.fround(Number(score))]),
    );
    expect(native.size).toBe(documents.length);
    const file = readFileSync(model);
    const engine = await create();
    engine.open({
      ...checkOptions(openOptions, { streamAll: true }),
      ...{ fileSize: file.length, vouched: false, kv: undefined },
    });
    expect(advance(engine, file)).toBe('ready');
    for (const [i, document] of documents.entries()) {
      engine.rerank(query, document, 0);
      expect(advance(engine, file)).toBe('embedding');
      expect([...engine.session.embedding()]).toEqual([native.get(i)]);
      expect(advance(engine, file)).toBe('done');
    }
    engine.session.close();
  });
});
