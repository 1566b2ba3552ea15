// One generation in the worker. Its pieces wait here until the page takes them.
import type { AnswerPiece, End } from '../boundary.gen.js';
import type { Batch, GenerateRequest } from '../contract.js';
import { SEQUENCE, isChat } from '../wasm/engine.js';
import { REPORT_INTERVAL } from './progress.js';
import type { Runner } from './runner.js';
import { Signal } from './tick.js';
import type { GeneratedToken } from '../token-types.js';
import type { GenerationResult, GenerationStats, PromptProgress } from '../types.js';

/** Pieces that may wait for the page; more of them pause the computation. */
const AHEAD = 16;

/** Text for the page, the number of tokens that had been generated when it was complete, and the parts of an answer. */
interface Piece {
  text: string;
  tokens: number;
  parts: AnswerPiece[];
}

export class Generation {
  readonly #runner: Runner;
  readonly #request: GenerateRequest;
  readonly #changed = new Signal();
  readonly #tokens: number[] = [];
  /** Tokens generated, dropped ones included. */
  #made = 0;
  readonly #begun = performance.now();
  readonly #pieces: Piece[] = [];
  /** Pieces that the page has taken. */
  #taken = 0;
  /** Tokens of the sequence before the first generated one, and at the end. */
  readonly #promptEnd: number;
  #position: number;
  /** Pieces after which the sequence ends if the generation is stopped. */
  #shown = 0;
  /** 'none' while it runs. */
  #end: End = 'none';
  #error: unknown;
  readonly #stopping = new AbortController();
  #firstToken: number | undefined;
  #lastToken = 0;
  /** Milliseconds between the first token and the last in which the page did not take pieces. */
  #heldBack = 0;
  #promptTokens = 0;
  readonly #reusedTokens: number;
  /** Progress of the prompt that the page has not taken, and the time of the last one. */
  #progress: PromptProgress | undefined;
  #reported = -Infinity;
  #logitsHash: string | undefined;
  #guesses: GenerationStats['guesses'];
  readonly #logprobs: GeneratedToken[] = [];
  readonly #finished: Promise<void>;

  /** Throws if the engine refuses the request. */
  constructor(runner: Runner, request: GenerateRequest) {
    this.#runner = runner;
    this.#request = request;
    runner.engine.start(request);
    const { position, promptTokens, reusedTokens } = runner.engine.session.sequenceStats(SEQUENCE);
    this.#promptTokens = promptTokens;
    this.#reusedTokens = reusedTokens;
    this.#promptEnd = this.#position = position + promptTokens - reusedTokens;
    this.#finished = this.#run();
  }

  /** Returns the next pieces, and waits for at least one. Throws the error that ended the generation. */
  async next(): Promise<Batch> {
    while (this.#waiting === 0 && this.#end === 'none' && !this.#progress) await this.#changed.wait();
    if (this.#end === 'error' && this.#waiting === 0) throw this.#error;
    const taken = this.#pieces.slice(this.#taken);
    const batch: Batch = {
      pieces: taken.map(({ text }) => text),
      ...(isChat(this.#request.prompt) && { parts: taken.map(({ parts }) => parts) }),
      ...(this.#progress && { prompt: this.#progress }),
    };
    this.#progress = undefined;
    this.#taken = this.#pieces.length;
    this.#changed.notify();
    if (this.#end === 'none' || this.#end === 'error') return batch;
    return { ...batch, result: { ...this.#account(), end: this.#end } };
  }

  /**
   * Resolves once nothing is computed any more. The sequence then ends with the text of the first `shown` pieces, by
   * default of those that the page has taken, and the others are dropped.
   */
  async stop(shown = this.#taken): Promise<void> {
    if (this.#end === 'none') {
      this.#shown = shown;
      this.#stopping.abort();
      this.#changed.notify();
    }
    await this.#finished;
    if (shown >= this.#pieces.length || this.#end === 'error') return;
    this.#cut(shown);
    this.#end = 'cancelled';
  }

  stats(): GenerationStats {
    return { ...this.#account(), running: this.#end === 'none', ...(this.#end !== 'none' && { end: this.#end }) };
  }

  #account(): Omit<GenerationResult, 'end'> {
    const seconds = (this.#lastToken - (this.#firstToken ?? 0) - this.#heldBack) / 1000;
    return {
      promptTokens: this.#promptTokens,
      reusedTokens: this.#reusedTokens,
      tokens: [...this.#tokens],
      seed: this.#request.seed,
      ...(this.#firstToken !== undefined && { firstTokenMs: this.#firstToken - this.#begun }),
      position: this.#position,
      ...(this.#made > 1 && seconds > 0 && { tokensPerSecond: (this.#made - 1) / seconds }),
      ...(this.#request.logprobs && this.#end !== 'none' && { logprobs: this.#logprobs }),
      ...(this.#guesses && { guesses: this.#guesses }),
      ...(this.#logitsHash !== undefined && { logitsHash: this.#logitsHash }),
    };
  }

  async #run(): Promise<void> {
    const { session } = this.#runner.engine;
    const { signal } = this.#stopping;
    const isAnswer = isChat(this.#request.prompt);
    try {
      for (;;) {
        const step = await this.#runner.run(signal, this.#firstToken === undefined ? () => this.#report() : undefined);
        if (this.#firstToken === undefined) this.#report(step === 'token' || step === 'done');
        if (step === 'token') this.#count(session.token());
        const text = session.piece();
        const parts = isAnswer ? session.parts() : [];
        if (text || parts.length > 0) {
          this.#pieces.push({ text, tokens: this.#tokens.length, parts });
          this.#changed.notify();
        }
        if (step === 'done') {
          const end = session.end(SEQUENCE);
          if (end === 'stop') this.#cut(this.#pieces.length);
          else this.#position = this.#promptEnd + session.sequenceStats(SEQUENCE).generatedTokens;
          this.#finish(end);
          return;
        }
        await this.#heldBackByPage();
        await this.#runner.turn();
      }
    } catch (error) {
      session.stop(SEQUENCE);
      if (error === signal.reason) {
        this.#cut(this.#shown);
        this.#finish(session.end(SEQUENCE));
      } else {
        this.#error = error;
        this.#finish('error');
      }
    }
  }

  /** Reports how much of the prompt is computed, if the page asked for it. */
  #report(isComputed = false): void {
    if (this.#request.promptProgress !== true) return;
    const now = performance.now();
    if (!isComputed && now - this.#reported < REPORT_INTERVAL) return;
    this.#reported = now;
    const { position } = this.#runner.engine.session.sequenceStats(SEQUENCE);
    const total = this.#promptTokens - this.#reusedTokens;
    this.#progress = { done: isComputed ? total : total - (this.#promptEnd - position), total };
    this.#changed.notify();
  }

  #count(token: number): void {
    this.#tokens.push(token);
    if (this.#request.logprobs) this.#logprobs.push(this.#runner.engine.logprobs());
    this.#made++;
    this.#position = this.#promptEnd + this.#made;
    this.#lastToken = performance.now();
    this.#firstToken ??= this.#lastToken;
  }

  async #heldBackByPage(): Promise<void> {
    if (this.#waiting < AHEAD) return;
    const since = performance.now();
    while (this.#waiting >= AHEAD && !this.#stopping.signal.aborted) await this.#changed.wait();
    this.#heldBack += performance.now() - since;
  }

  /** Pieces that the page has not taken. */
  get #waiting(): number {
    return this.#pieces.length - this.#taken;
  }

  /**
   * Ends the sequence at the end of the first `shown` pieces. A token of which they have only a part, such as one that
   * also begins a stop string, leaves the sequence, and the part becomes text before the next prompt.
   */
  #cut(shown: number): void {
    const { engine } = this.#runner;
    this.#pieces.length = Math.min(shown, this.#pieces.length);
    this.#taken = Math.min(this.#taken, shown);
    const text = this.#pieces.map((piece) => piece.text).join('');
    this.#tokens.length = this.#pieces.at(-1)?.tokens ?? 0;
    let whole: string;
    while (!text.startsWith((whole = engine.detokenize(Uint32Array.from(this.#tokens), false)))) this.#tokens.pop();
    this.#logprobs.length = Math.min(this.#logprobs.length, this.#tokens.length);
    this.#position = this.#promptEnd + this.#tokens.length;
    engine.rewind(this.#position, text.slice(whole.length));
  }

  #finish(end: End): void {
    if (this.#request.logitsHash) this.#logitsHash = this.#runner.engine.session.logitsHash(SEQUENCE);
    const { guessedTokens: made, rightTokens: right } = this.#runner.engine.session.sequenceStats(SEQUENCE);
    if (made > 0) this.#guesses = { made, right };
    this.#end = end;
    this.#changed.notify();
  }
}
