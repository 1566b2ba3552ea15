// One generation in the worker. Its pieces stay here until the page takes them.
import type { AnswerPiece, End, Step } from '../boundary.gen.js';
import type { Batch, GenerateRequest } from '../contract.js';
import { isChat } from '../wasm/engine.js';
import type { Engine } from '../wasm/engine.js';
import type { Passes, Work } from './passes.js';
import { REPORT_INTERVAL } from './progress.js';
import type { Turn } from './sequences.js';
import { Signal } from './tick.js';
import type { GeneratedToken } from '../token-types.js';
import type { GenerationResult, GenerationStats, PromptProgress } from '../types.js';

/** Pieces that the page has not taken, of which more pause the computation. */
const AHEAD = 16;

/** Text for the page, the number of tokens that had been generated when it was complete, and the parts of an answer. */
interface Piece {
  text: string;
  tokens: number;
  parts: AnswerPiece[];
}

export class Generation implements Work {
  readonly #engine: Engine;
  readonly #passes: Passes;
  readonly #turn: Turn;
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
  /** 'none' while it runs. */
  #end: End = 'none';
  #error: unknown;
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
  readonly #isAnswer: boolean;

  /** Begins a generation in the sequence of a turn, which ends with it. Throws if the engine refuses the request. */
  constructor(engine: Engine, passes: Passes, turn: Turn, request: GenerateRequest) {
    this.#engine = engine;
    this.#passes = passes;
    this.#turn = turn;
    this.#request = request;
    this.#isAnswer = isChat(request.prompt);
    engine.start(request, turn.sequence);
    const { position, promptTokens, reusedTokens } = engine.session.sequenceStats(turn.sequence);
    this.#promptTokens = promptTokens;
    this.#reusedTokens = reusedTokens;
    this.#promptEnd = this.#position = position + promptTokens - reusedTokens;
    passes.begin(turn.sequence, this);
  }

  /** Returns the next pieces, and waits for at least one. Throws the error that ended the generation. */
  async next(): Promise<Batch> {
    while (this.#waiting === 0 && this.#end === 'none' && !this.#progress) await this.#changed.wait();
    if (this.#end === 'error' && this.#waiting === 0) throw this.#error;
    const taken = this.#pieces.slice(this.#taken);
    const batch: Batch = {
      pieces: taken.map(({ text }) => text),
      ...(this.#isAnswer && { parts: taken.map(({ parts }) => parts) }),
      ...(this.#progress && { prompt: this.#progress }),
    };
    this.#progress = undefined;
    this.#taken = this.#pieces.length;
    this.#passes.notify();
    if (taken.length > 0) return batch; // after which the page may stop the generation
    return this.#end === 'none' ? batch : { ...batch, result: this.#result() };
  }

  /**
   * Ends the computation. The text, and the sequence if no later call has changed it, then ends with the first `shown`
   * pieces, by default with those that the page has taken. Throws the error that ended the generation before.
   */
  stop(shown = this.#taken): GenerationResult {
    if (this.#end === 'none') {
      this.#passes.stop(this.#turn.sequence);
      this.#cut(shown);
      this.#finish('cancelled');
    } else if (this.#end === 'error') {
      throw this.#error;
    } else if (shown < this.#pieces.length) {
      this.#cut(shown);
      this.#end = 'cancelled';
    }
    return this.#result();
  }

  stats(): GenerationStats {
    return { ...this.#account(), running: this.#end === 'none', ...(this.#end !== 'none' && { end: this.#end }) };
  }

  #result(): GenerationResult {
    return { ...this.#account(), end: this.#end as GenerationResult['end'] };
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
      sequence: this.#turn.sequence,
      ...(this.#made > 1 && seconds > 0 && { tokensPerSecond: (this.#made - 1) / seconds }),
      ...(this.#request.logprobs && this.#end !== 'none' && { logprobs: this.#logprobs }),
      ...(this.#guesses && { guesses: this.#guesses }),
      ...(this.#logitsHash !== undefined && { logitsHash: this.#logitsHash }),
    };
  }

  take(step: Step): boolean {
    const { session } = this.#engine;
    if (this.#firstToken === undefined) this.#report(true);
    if (step === 'token') this.#count(session.token());
    const text = session.piece();
    const parts = this.#isAnswer ? session.parts() : [];
    const call = this.#request.oneCall === true ? parts.findIndex(({ kind }) => kind === 'arguments') : -1;
    if (call >= 0) parts.length = call + 1;
    if (text || parts.length > 0) {
      this.#pieces.push({ text, tokens: this.#tokens.length, parts });
      this.#changed.notify();
    }
    const { sequence } = this.#turn;
    if (step !== 'done') {
      if (call < 0) return true;
      this.#passes.stop(sequence);
      this.#cut(this.#pieces.length);
      this.#finish('stop');
      return false;
    }
    const end = session.end(sequence);
    if (end === 'stop') this.#cut(this.#pieces.length);
    else this.#position = this.#promptEnd + session.sequenceStats(sequence).generatedTokens;
    this.#finish(end);
    return false;
  }

  progress(): void {
    if (this.#firstToken === undefined) this.#report();
  }

  fail(error: unknown): void {
    this.#error = error;
    this.#finish('error');
  }

  get isAhead(): boolean {
    return this.#waiting >= AHEAD;
  }

  paused(ms: number): void {
    if (this.#firstToken !== undefined) this.#heldBack += ms;
  }

  /** Reports how much of the prompt is computed, if the page asked for it. */
  #report(isComputed = false): void {
    if (this.#request.promptProgress !== true) return;
    const now = performance.now();
    if (!isComputed && now - this.#reported < REPORT_INTERVAL) return;
    this.#reported = now;
    const { position } = this.#engine.session.sequenceStats(this.#turn.sequence);
    const total = this.#promptTokens - this.#reusedTokens;
    this.#progress = { done: isComputed ? total : total - (this.#promptEnd - position), total };
    this.#changed.notify();
  }

  #count(token: number): void {
    this.#tokens.push(token);
    if (this.#request.logprobs) this.#logprobs.push(this.#engine.logprobs());
    this.#made++;
    this.#position = this.#promptEnd + this.#made;
    this.#lastToken = performance.now();
    this.#firstToken ??= this.#lastToken;
  }

  /** Pieces that the page has not taken. */
  get #waiting(): number {
    return this.#pieces.length - this.#taken;
  }

  /**
   * Ends the text at the end of the first `shown` pieces, and the sequence too, unless a later call has changed it. A
   * token of which they have only a part, such as one that also begins a stop string, leaves the sequence, and the part
   * becomes text before the next prompt.
   */
  #cut(shown: number): void {
    const engine = this.#engine;
    this.#pieces.length = Math.min(shown, this.#pieces.length);
    this.#taken = Math.min(this.#taken, shown);
    const text = this.#pieces.map((piece) => piece.text).join('');
    this.#tokens.length = this.#pieces.at(-1)?.tokens ?? 0;
    let whole: string;
    while (!text.startsWith((whole = engine.detokenize(Uint32Array.from(this.#tokens), false)))) this.#tokens.pop();
    this.#logprobs.length = Math.min(this.#logprobs.length, this.#tokens.length);
    this.#position = this.#promptEnd + this.#tokens.length;
    if (this.#turn.isLast) engine.rewind(this.#position, this.#turn.sequence, text.slice(whole.length));
  }

  #finish(end: End): void {
    const { session } = this.#engine;
    const { sequence } = this.#turn;
    if (this.#request.logitsHash) this.#logitsHash = session.logitsHash(sequence);
    const { guessedTokens: made, rightTokens: right } = session.sequenceStats(sequence);
    if (made > 0) this.#guesses = { made, right };
    this.#end = end;
    this.#changed.notify();
    this.#turn.end();
  }
}
