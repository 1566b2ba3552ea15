// The search of the visitor's files as a tool of the chat. Its model is open only while it searches, so that the chat's
// budget is the memory that stays.

import { QSF } from 'qsf';
import { CACHE_LIMIT } from '../kept.js';
import { embedderOf, rememberedChoice } from './embedder.js';
import { Library } from './library.js';
import { openStore } from './store.js';
import type { Store } from './store.js';

/** Passages in a result: a small model's context has little room. */
const PASSAGES = 3;

/** Returns the passages that are nearest to a question. Rejects with a sentence for the model that asked. */
export async function searchFiles(question: string, signal?: AbortSignal, store?: Store): Promise<string> {
  const choice = rememberedChoice();
  const library = await Library.open(store ?? (await openStore()));
  if (!choice || library.files.length === 0)
    throw new Error('there are no files to search; the user can add some on the page "Ask your files"');
  const llm = await QSF.load(choice.source, { memory: choice.memory, cacheLimit: CACHE_LIMIT, signal });
  try {
    const embedder = embedderOf(llm, choice.source);
    await library.use(embedder.key);
    const hits = await library.find(question, embedder, PASSAGES, signal);
    if (hits.length === 0) throw new Error('the files have no vectors yet; the page "Ask your files" makes them');
    return hits.map(({ file, text }) => `${file.name}:\n${text}`).join('\n\n');
  } finally {
    await llm.close();
  }
}
