// A model that makes vectors of texts, and the choice of it that later visits and the chat's tool repeat.

import type { QSF } from 'qsf';
import { suggestedSource } from '../address.js';

export interface Embedder {
  /** The model's name among those whose vectors are kept. */
  key: string;
  llm: Pick<QSF, 'embed' | 'stats' | 'tokenize'>;
  /** Texts that the model expects before each query and each passage. */
  prefixes: { query: string; passage: string };
}

export function embedderOf(llm: Embedder['llm'], source: string | File): Embedder {
  const key = typeof source === 'string' ? source : `file:${source.name}:${source.size}:${source.lastModified}`;
  const prefixes = suggestedSource(source)?.prefixes ?? { query: '', passage: '' };
  return { key, llm, prefixes };
}

const KEY = 'qsf.files.model';

/** The choice of a model, which a file cannot be. */
export interface Choice {
  source: string;
  /** Bytes. */
  memory: number;
}

export function rememberChoice(choice: Choice | undefined): void {
  try {
    if (choice) localStorage.setItem(KEY, JSON.stringify(choice));
    else localStorage.removeItem(KEY);
  } catch {
    // Without storage the visitor chooses again.
  }
}

export function rememberedChoice(): Choice | undefined {
  try {
    const { source, memory } = (JSON.parse(localStorage.getItem(KEY) ?? 'null') ?? {}) as Partial<Choice>;
    return typeof source === 'string' && Number.isSafeInteger(memory) ? { source, memory: memory! } : undefined;
  } catch {
    return undefined;
  }
}
