// One generation in the worker: pieces wait here until the page takes them.
import type { End } from './boundary.gen.js';
import type { Batch, GenerateRequest } from './contract.js';
import type { Runner } from './runner.js';
import { Signal } from './tick.js';
import type { GenerationResult, GenerationStats } from './types.js';

/** Pieces that may wait for the page; more hold the computation back. */
const AHEAD = 16;

export class Generation {
  readonly #runner: Runner;
  readonly #request: GenerateRequest;
  readonly #changed = new Signal();
  readonly #tokens: number[] = [];
  readonly #begun = performance.now();
  #pieces: string[] = [];
  /** 'none' while it runs. */
  #end: End = 'none';
  #error: unknown;
  #stopping = false;
  #firstToken: number | undefined;
  #lastToken = 0;
  /** Milliseconds between the first token and the last in which the page did not take pieces. */
  #heldBack = 0;
  #promptTokens = 0;
  #logitsHash: string | undefined;
  readonly #finished: Promise<void>;

  /** Throws when the engine refuses the request. */
  constructor(runner: Runner, request: GenerateRequest) {
    this.#runner = runner;
    this.#request = request;
    runner.rearm();
    runner.engine.start(request);
    this.#promptTokens = runner.engine.sequenceStats().promptTokens;
    this.#finished = this.#run();
  }

  /** The next pieces; waits for one. Throws what ended the generation. */
  async next(): Promise<Batch> {
    while (this.#pieces.length === 0 && this.#end === 'none') await this.#changed.wait();
    if (this.#end === 'error' && this.#pieces.length === 0) throw this.#error;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#changed.notify();
    if (this.#end === 'none' || this.#end === 'error') return { pieces };
    return { pieces, result: { ...this.#account(), end: this.#end } };
  }

  /** Resolves once nothing is computed any more. */
  async stop(): Promise<void> {
    if (this.#end === 'none') {
      this.#stopping = true;
      this.#runner.stop();
      this.#changed.notify();
    }
    await this.#finished;
  }

  stats(): GenerationStats {
    return { ...this.#account(), running: this.#end === 'none', ...(this.#end !== 'none' && { end: this.#end }) };
  }

  #account(): Omit<GenerationResult, 'end'> {
    const seconds = (this.#lastToken - (this.#firstToken ?? 0) - this.#heldBack) / 1000;
    return {
      promptTokens: this.#promptTokens,
      tokens: [...this.#tokens],
      seed: this.#request.seed,
      ...(this.#firstToken !== undefined && { firstTokenMs: this.#firstToken - this.#begun }),
      ...(this.#tokens.length > 1 && seconds > 0 && { tokensPerSecond: (this.#tokens.length - 1) / seconds }),
      ...(this.#logitsHash !== undefined && { logitsHash: this.#logitsHash }),
    };
  }

  async #run(): Promise<void> {
    const { engine } = this.#runner;
    try {
      while (!this.#stopping) {
        const step = await this.#runner.run();
        if (step === 'stopped') break;
        if (step === 'token') this.#count(engine.token());
        const piece = engine.piece();
        if (piece) {
          this.#pieces.push(piece);
          this.#changed.notify();
        }
        if (step === 'done') {
          this.#finish(engine.end());
          return;
        }
        await this.#heldBackByPage();
        await this.#runner.turn();
      }
      engine.stop();
      this.#finish(engine.end());
    } catch (error) {
      this.#error = error;
      engine.stop();
      this.#finish('error');
    }
  }

  #count(token: number): void {
    this.#tokens.push(token);
    this.#lastToken = performance.now();
    this.#firstToken ??= this.#lastToken;
  }

  async #heldBackByPage(): Promise<void> {
    if (this.#pieces.length < AHEAD) return;
    const since = performance.now();
    while (this.#pieces.length >= AHEAD && !this.#stopping) await this.#changed.wait();
    this.#heldBack += performance.now() - since;
  }

  #finish(end: End): void {
    if (this.#request.logitsHash) this.#logitsHash = this.#runner.engine.logitsHash();
    this.#end = end;
    this.#changed.notify();
  }
}
