import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  const hashes: string[] = [];
  for (const seed of [7, 7, 8]) {
    const story = llm.generate('The old king', { maxTokens: 20, seed, logitsHash: true });
    for await (const piece of story) print(piece);
    const { logitsHash } = await story.result;
    hashes.push(logitsHash!);
    print(`\n${logitsHash!}\n`);
  }
  print(hashes[0] === hashes[1] ? 'The same bits twice.' : 'This cannot be.');
  await llm.close();
}
