// The embeddings or scores of texts, computed one after the other in one sequence.
import type { Step } from '../boundary.gen.js';
import type { EmbedRequest } from '../contract.js';
import { QSFError } from '../errors.js';
import type { ErrorName } from '../errors.js';
import type { Engine } from '../wasm/engine.js';
import type { Passes, Work } from './passes.js';
import type { Turn } from './sequences.js';

/** The codes of errors whose reason is a text, which the sentence names if there are several. */
const OF_TEXTS: readonly ErrorName[] = ['bad_argument', 'context_full', 'bad_token'];

export class Embedding implements Work {
  readonly isAhead = false;
  /** The embedding of each text. */
  readonly finished: Promise<Float32Array[]>;
  readonly #engine: Engine;
  readonly #passes: Passes;
  readonly #turn: Turn;
  readonly #request: EmbedRequest;
  readonly #embeddings: Float32Array[] = [];
  #begun = 0;
  #resolve!: (embeddings: Float32Array[]) => void;
  #reject!: (error: unknown) => void;

  /** Begins in the sequence of a turn, which ends with it. Throws if the engine refuses the first text. */
  constructor(engine: Engine, passes: Passes, turn: Turn, request: EmbedRequest) {
    this.#engine = engine;
    this.#passes = passes;
    this.#turn = turn;
    this.#request = request;
    this.finished = new Promise((resolve, reject) => ([this.#resolve, this.#reject] = [resolve, reject]));
    this.finished.catch(() => {});
    if (this.#goesOn()) passes.begin(turn.sequence, this);
  }

  take(step: Step): boolean {
    if (step !== 'embedding') return this.#goesOn();
    this.#embeddings.push(this.#engine.session.embedding().slice());
    return true;
  }

  progress(): void {
    // Nobody listens.
  }

  paused(): void {
    // Nothing is measured.
  }

  fail(error: unknown): void {
    this.#reject(error);
    this.#turn.end();
  }

  /** Ends the computation. `finished` then rejects with cancelled, if it is not settled. */
  stop(): void {
    this.#passes.stop(this.#turn.sequence);
    this.fail(new QSFError('cancelled', 'the embedding was stopped'));
  }

  /** Begins the next text. Returns whether there was one. */
  #goesOn(): boolean {
    const { texts, query, ...how } = this.#request;
    if (this.#begun < texts.length) {
      const i = this.#begun++;
      try {
        if (query === undefined) this.#engine.embed(texts[i]!, how, this.#turn.sequence);
        else this.#engine.rerank(query, texts[i] as string, this.#turn.sequence);
      } catch (error) {
        throw texts.length > 1 && query !== '' && error instanceof QSFError && OF_TEXTS.includes(error.code)
          ? new QSFError(error.code, `texts[${i}]: ${error.message}`, { cause: error })
          : error;
      }
      return true;
    }
    this.#resolve(this.#embeddings);
    this.#turn.end();
    return false;
  }
}
