import { QSF, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  const llm = await QSF.load(model, { memory: 16 * MiB, cacheLimit: 4096 * MiB });
  await llm.close();
  for (const { url, bytes, complete } of await QSF.cache.list()) {
    print(`${new URL(url).pathname}: ${(bytes / MiB).toFixed(2)} MiB${complete ? ', complete' : ''}\n`);
  }
  const { bytes, models } = await QSF.cache.usage();
  print(`${models} together take ${(bytes / MiB).toFixed(2)} MiB.`);
}
