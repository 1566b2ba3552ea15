import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  for await (const piece of llm.generate('A little fox', { maxTokens: 20 })) print(piece);
  print(' …\n');
  for await (const piece of llm.generate(' But then', { maxTokens: 20, continue: true, addBos: false })) print(piece);
  print(`\n${(await llm.stats()).position} tokens are in the cache of keys and values.`);
  await llm.close();
}
