// The visitor's files with their passages and vectors, and the search of them.

import { nearest, passagesOf } from 'qsf/retrieval';
import type { Passage } from 'qsf/retrieval';
import { randomName } from '../../../src/random-name.js';
import type { Embedder } from './embedder.js';
import { memoryStore } from './store.js';
import type { Store, StoredFile, StoredVectors } from './store.js';

/** Passages in one call of embed(). After each call the progress is shown, and a question may go first. */
const TOGETHER = 4;
/** Tokens of the context that a model adds to a passage by itself, at most. */
const ADDED = 8;
/** Letters of a passage that is not divided further. */
const SHORT = 32;

/** A passage that a search found. */
export interface Hit {
  file: StoredFile;
  text: string;
  /** The cosine of the angle between the vectors of the question and of the passage. */
  score: number;
}

/** A passage in all files, with its vector. */
interface Place {
  file: StoredFile;
  start: number;
  end: number;
}

export class Library {
  readonly #store: Store;
  #files: StoredFile[];
  /** The vectors of files by the current model. */
  #vectors = new Map<string, StoredVectors>();
  #model: string | undefined;

  /** Opens the library of a store. One that cannot be read is replaced by one that keeps nothing. */
  static async open(store: Store): Promise<Library> {
    const files = await store.files().catch(() => undefined);
    return new Library(files ? store : memoryStore(), files ?? []);
  }

  private constructor(store: Store, files: StoredFile[]) {
    this.#store = store;
    this.#files = files.sort((a, b) => a.time - b.time);
  }

  get keeps(): boolean {
    return this.#store.keeps;
  }

  /** The files, oldest first. */
  get files(): readonly StoredFile[] {
    return this.#files;
  }

  /** The number of a file's passages that the current model has vectors of; undefined before it has. */
  passages(id: string): number | undefined {
    const vectors = this.#vectors.get(id);
    return vectors && vectors.bounds.length / 2;
  }

  /** The first file without vectors by the current model. */
  get missing(): StoredFile | undefined {
    return this.#files.find(({ id }) => !this.#vectors.has(id));
  }

  /** Adds a file, in the place of one with the same name. */
  async add(name: string, bytes: number, text: string): Promise<void> {
    const file = { id: randomName(), name, bytes, time: Date.now(), text };
    await this.#store.putFile(file);
    for (const old of this.#files.filter((other) => other.name === name)) await this.remove(old.id);
    this.#files.push(file);
  }

  async remove(id: string): Promise<void> {
    await this.#store.remove(id);
    this.#files = this.#files.filter((file) => file.id !== id);
    this.#vectors.delete(id);
  }

  /** Takes the vectors that are kept of a model. */
  async use(model: string): Promise<void> {
    this.#model = model;
    // Vectors that cannot be read are made again.
    const kept = await this.#store.vectors(model).catch(() => []);
    if (this.#model === model) this.#vectors = new Map(kept.map((vectors) => [vectors.file, vectors]));
  }

  /** Makes and keeps the vectors of a file by the current model. Rejects when it is aborted. */
  async embed(
    file: StoredFile,
    embedder: Embedder,
    signal: AbortSignal,
    report: (done: number, total: number) => void,
  ): Promise<void> {
    const { key, llm, prefixes } = embedder;
    const passages = await fittingPassages(file.text, embedder);
    const vectors: Float32Array[] = [];
    while (vectors.length < passages.length) {
      report(vectors.length, passages.length);
      signal.throwIfAborted();
      const texts = passages
        .slice(vectors.length, vectors.length + TOGETHER)
        .map(({ text }) => prefixes.passage + text);
      vectors.push(...(await llm.embed(texts, { normalize: true, signal })));
    }
    const dim = vectors[0]?.length ?? 0;
    const values = new Float32Array(dim * vectors.length);
    for (const [i, vector] of vectors.entries()) values.set(vector, i * dim);
    const bounds = Uint32Array.from(passages.flatMap(({ start, end }) => [start, end]));
    const made = { file: file.id, model: key, bounds, values, dim };
    signal.throwIfAborted();
    await this.#store.putVectors(made);
    if (this.#model === key && this.#files.includes(file)) this.#vectors.set(file.id, made);
  }

  /** Returns the passages that are nearest to a question by the current model, the best one first. */
  async find(question: string, { llm, prefixes }: Embedder, most: number, signal?: AbortSignal): Promise<Hit[]> {
    const query = await llm.embed(prefixes.query + question, { normalize: true, signal });
    const places: Place[] = [];
    const vectors: Float32Array[] = [];
    for (const file of this.#files) {
      const { bounds = [], values, dim = 0 } = this.#vectors.get(file.id) ?? {};
      for (let i = 0; i < bounds.length / 2; i++) {
        places.push({ file, start: bounds[2 * i]!, end: bounds[2 * i + 1]! });
        vectors.push(values!.subarray(i * dim, (i + 1) * dim));
      }
    }
    return nearest(query, vectors, most).map(({ index, score }) => {
      const { file, start, end } = places[index]!;
      return { file, text: file.text.slice(start, end), score };
    });
  }
}

/** Returns the passages of a text. One with more tokens than the model's context has room for is divided. */
export async function fittingPassages(text: string, { llm, prefixes }: Embedder): Promise<Passage[]> {
  const room = (await llm.stats()).plan.maxSeqLen - ADDED;
  const fitting = async (passage: Passage): Promise<Passage[]> => {
    const isShort = passage.text.length < SHORT;
    if (isShort || (await llm.tokenize(prefixes.passage + passage.text)).length <= room) return [passage];
    const parts = passagesOf(passage.text, { length: Math.ceil(passage.text.length / 2), overlap: 0 });
    const all: Passage[] = [];
    for (const { start, end, text: part } of parts)
      all.push(...(await fitting({ start: passage.start + start, end: passage.start + end, text: part })));
    return all;
  };
  const all: Passage[] = [];
  for (const passage of passagesOf(text)) all.push(...(await fitting(passage)));
  return all;
}
