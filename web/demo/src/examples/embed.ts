import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  const texts = ['The king was old.', 'An old king lived there.', 'Fish swim in the sea.'];
  const [first, ...others] = await llm.embed(texts, { pooling: 'mean', normalize: true });
  for (const [i, other] of others.entries()) {
    const likeness = other.reduce((sum, value, j) => sum + value * first![j]!, 0);
    print(`${texts[0]!} | ${texts[i + 1]!} ${likeness.toFixed(3)}\n`);
  }
  await llm.close();
}
