import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  const story = llm.generate('In the forest', { maxTokens: 400, stop: '.' });
  for await (const piece of story) print(piece);
  const { end, tokens, tokensPerSecond = 0 } = await story.result;
  print(`\nIt ended by ${end} after ${tokens.length} tokens, ${tokensPerSecond.toFixed(0)} a second.`);
  await llm.close();
}
