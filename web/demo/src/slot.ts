// The one open model of the page. A new budget closes it and opens it again with that much memory; the newest wish wins.

import { QSF } from 'qsf';
import type { Progress } from 'qsf';

export class ModelSlot {
  /** An address, or a file of the visitor's. */
  source: string | File;
  #opening = new AbortController();
  #last: Promise<unknown> = Promise.resolve();
  #llm: QSF | undefined;

  constructor(source: string) {
    this.source = source;
  }

  /** The open model; undefined before the first, between two, and after a refusal. */
  get llm(): QSF | undefined {
    return this.#llm;
  }

  /** Opens the model with `memory` bytes, after whatever was open is closed. Rejects when a later call overtakes it. */
  open(memory: number, onProgress: (p: Progress) => void): Promise<QSF> {
    this.#opening.abort();
    const { signal } = (this.#opening = new AbortController());
    const { source } = this;
    return this.#after(async () => {
      await this.#close();
      signal.throwIfAborted();
      return (this.#llm = await QSF.load(source, { memory, onProgress, signal }));
    });
  }

  /** Closes what is open and removes what this browser keeps of the model file. */
  forget(): Promise<void> {
    this.#opening.abort();
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
