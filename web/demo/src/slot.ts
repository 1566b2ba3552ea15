// The one open model of the page. A new budget closes it and opens it again with that much memory. The newest request
// wins.

import { QSF } from 'qsf';
import type { Progress } from 'qsf';
import { CACHE_LIMIT } from './kept.js';
import { computeRate } from './rate.js';
import { nextTask } from './slices.js';

export class ModelSlot {
  /** An address, or a file of the visitor's. */
  source: string | File;
  #opening = new AbortController();
  #last: Promise<unknown> = Promise.resolve();
  #llm: QSF | undefined;

  constructor(source: string | File) {
    this.source = source;
  }

  /** The open model; undefined before the first, between two, and after a refusal. */
  get llm(): QSF | undefined {
    return this.#llm;
  }

  /** Opens the model with `memory` bytes, after the previous one is closed. Rejects when a later call replaces it. */
  open(memory: number, onProgress: (p: Progress) => void): Promise<QSF> {
    this.cancel();
    const { signal } = (this.#opening = new AbortController());
    const { source } = this;
    return this.#after(async () => {
      await this.#close();
      signal.throwIfAborted();
      // The page's first access to its storage waits for the browser, so that it has a task for itself.
      await nextTask();
      const options = { memory, computeRate: computeRate(), cacheLimit: CACHE_LIMIT, onProgress, signal };
      return (this.#llm = await QSF.load(source, options));
    });
  }

  /** Gives up an opening: its promise rejects at once. */
  cancel(): void {
    this.#opening.abort();
  }

  /** Gives up an opening, and closes the open model. */
  close(): Promise<void> {
    this.cancel();
    return this.#after(() => this.#close());
  }

  /** Closes the open model and removes the cached bytes of its file. */
  forget(): Promise<void> {
    this.cancel();
    const { source } = this;
    return this.#after(async () => {
      await this.#close();
      if (typeof source === 'string') await QSF.cache.remove(source);
    });
  }

  #after<T>(next: () => Promise<T>): Promise<T> {
    const result = this.#last.then(next);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #close(): Promise<void> {
    const llm = this.#llm;
    this.#llm = undefined;
    await llm?.close();
  }
}
