import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  for (const memory of [3 * MiB, 8 * MiB]) {
    const llm = await QSF.load(model, { memory });
    const { plan } = await llm.stats();
    print(`${memory / MiB} MiB: ${plan.pinnedSegments} of ${plan.segments} segments stay in memory,`);
    print(` ${plan.maxSeqLen} tokens of context, keys and values in ${plan.kv}\n`);
    await llm.close();
  }
}
