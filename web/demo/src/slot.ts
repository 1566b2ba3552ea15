// The one open model of the page. A new budget closes it and opens it again with that much memory; the newest wish wins.

import { QSF } from 'qsf';
import type { Progress } from 'qsf';

export class ModelSlot {
  readonly #url: string;
  #opening = new AbortController();
  #last: Promise<unknown> = Promise.resolve();
  #llm: QSF | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** The open model; undefined before the first, between two, and after a refusal. */
  get llm(): QSF | undefined {
    return this.#llm;
  }

  /** Opens the model with `memory` bytes, after whatever was open is closed. Rejects when a later call overtakes it. */
  open(memory: number, onProgress: (p: Progress) => void): Promise<QSF> {
    this.#opening.abort();
    const { signal } = (this.#opening = new AbortController());
    return this.#after(async () => {
      await this.#close();
      signal.throwIfAborted();
      return (this.#llm = await QSF.load(this.#url, { memory, onProgress, signal }));
    });
  }

  /** Closes what is open and removes what this browser keeps of the model file. */
  forget(): Promise<void> {
    this.#opening.abort();
    return this.#after(async () => {
      await this.#close();
      await QSF.cache.remove(this.#url);
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
