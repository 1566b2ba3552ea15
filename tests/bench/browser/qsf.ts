import { QSF } from '../../../web/src/index.js';
import type { GenerateOptions } from '../../../web/src/index.js';

import type { Engine, Rates, Settings, Work } from './page.js';

const greedy: GenerateOptions = { temperature: 0, ignoreEos: true };

/** Returns what QSF loads. A copy of the file's bytes is made for it. */
async function sourceOf({ qsf, from = 'address' }: Settings): Promise<string | Blob | ArrayBuffer> {
  if (from === 'address') return qsf;
  const file = document.querySelector('input')!.files![0]!;
  if (from === 'file') return file;
  const bytes = await file.arrayBuffer();
  return from === 'blob' ? new Blob([bytes]) : bytes;
}

export async function openQsf(settings: Settings): Promise<Engine> {
  const { memory, threads, variant, cache = false } = settings;
  const llm = await QSF.load(await sourceOf(settings), { memory, threads, cache, ...(variant && { variant }) });

  async function generate(prompt: number[], maxTokens: number) {
    await llm.rewind(0); // computed tokens would not be measured
    const pieces = llm.generate(prompt, { ...greedy, maxTokens });
    while (!(await pieces.next()).done);
    const { generation, io } = await llm.stats();
    return { ...generation!, bytes: io.engine };
  }

  return {
    async measure({ prompt, generate: n }: Work): Promise<Rates> {
      // Any ids cost the same; these differ, so that embedding rows are not all one.
      const ids = Array.from({ length: prompt }, (_, i) => 3 + ((i * 7) % 1000));
      const prefill = await generate(ids, 1);
      const decode = await generate(ids.slice(0, 1), n + 1);
      const read = (decode.bytes - prefill.bytes) / (n + 1);
      return { prefill: prompt / (prefill.firstTokenMs! / 1000), decode: decode.tokensPerSecond!, read };
    },
    async about() {
      const { engine, plan } = await llm.stats();
      const { variant, isa, threads } = engine;
      return { variant, isa, threads, chunk: plan.chunk, kv: plan.kv, streamed: plan.ringSlots > 0 };
    },
  };
}
