// node main.js MODEL: a path or an address.
import { MiB, QSF } from 'qsf';

const llm = await QSF.load(process.argv[2] ?? 'stories-8bit.qsf', { memory: 16 * MiB });
for await (const piece of llm.generate('Once upon a time', { maxTokens: 40, temperature: 0 }))
  process.stdout.write(piece);
await llm.close();
