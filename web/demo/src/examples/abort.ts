import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  try {
    const signal = AbortSignal.timeout(200);
    for await (const piece of llm.generate('The wolf', { maxTokens: 480, temperature: 1, signal })) print(piece);
    print('\nIt was done before.');
  } catch (error) {
    print(`\n${(error as Error).name}: it stopped at once.`);
  }
  await llm.close();
}
