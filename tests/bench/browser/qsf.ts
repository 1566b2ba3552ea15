import { QSF } from '../../../web/src/index.js';
import type { GenerateOptions } from '../../../web/src/index.js';

import type { Engine, Rates, Settings, Work } from './page.js';

const greedy: GenerateOptions = { temperature: 0, ignoreEos: true };

export async function openQsf({ qsf, memory, threads, variant, cache = false }: Settings): Promise<Engine> {
  const llm = await QSF.load(qsf, { memory, threads, cache, ...(variant && { variant }) });

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
