import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  for await (const piece of llm.generate('Once upon a time', { maxTokens: 40 })) print(piece);
  await llm.close();
}
