// The passes of all sequences that compute. Each step's result goes to the work of its sequence.
import type { Step } from '../boundary.gen.js';
import type { Runner } from './runner.js';
import { Signal } from './tick.js';

/** The computation of one sequence. The engine has begun it. */
export interface Work {
  /** Takes the step token, embedding or done, and returns whether the work goes on. An exception ends it. */
  take(step: Step): boolean;
  /** Called after steps without a result. */
  progress(): void;
  /** Ends the work because of an error. */
  fail(error: unknown): void;
  /** Whether so many results wait for the page that computing can pause. */
  readonly isAhead: boolean;
  /** Called after a pause of so many milliseconds. */
  paused(ms: number): void;
}

export class Passes {
  readonly #runner: Runner;
  readonly #works = new Map<number, Work>();
  readonly #changed = new Signal();
  readonly #result = new Signal();
  #state: 'idle' | 'computing' | 'paused' = 'idle';
  #isHurried = false;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** Adds the work of a sequence, which the engine has begun. */
  begin(sequence: number, work: Work): void {
    this.#works.set(sequence, work);
    this.notify();
    if (this.#state === 'idle') void this.#run();
  }

  /** Ends the work of a sequence without a result. */
  stop(sequence: number): void {
    this.#runner.stop(sequence);
    this.#works.delete(sequence);
    this.#runner.wake();
    this.notify();
  }

  /** Must be called when a work is no longer ahead. */
  notify(): void {
    this.#changed.notify();
  }

  /** While it is true, computing does not pause for the page. */
  set isHurried(isHurried: boolean) {
    this.#isHurried = isHurried;
    this.notify();
  }

  /** Resolves when the current pass is over, which may have columns of a sequence that was stopped. */
  async passed(): Promise<void> {
    if (this.#state === 'computing') await this.#result.wait();
  }

  async #run(): Promise<void> {
    this.#state = 'computing';
    while (this.#works.size > 0) {
      try {
        const step = await this.#runner.run(() => this.#works.forEach((work) => work.progress()));
        this.#take(step);
      } catch (error) {
        this.#fail(error);
      }
      this.#result.notify();
      while (this.#isAhead) await this.#pause();
      await this.#runner.turn();
    }
    this.#state = 'idle';
  }

  /** Whether all works are ahead of the page, and no call waits. */
  get #isAhead(): boolean {
    return this.#works.size > 0 && !this.#isHurried && [...this.#works.values()].every(({ isAhead }) => isAhead);
  }

  async #pause(): Promise<void> {
    this.#state = 'paused';
    const since = performance.now();
    await this.#changed.wait();
    const ms = performance.now() - since;
    this.#works.forEach((work) => work.paused(ms));
    this.#state = 'computing';
  }

  #take(step: Step): void {
    const sequence = this.#runner.engine.session.sequence();
    const work = this.#works.get(sequence);
    if (step === 'ready' || !work) return;
    try {
      if (work.take(step)) return;
      this.#works.delete(sequence);
    } catch (error) {
      this.#end(sequence, work, error);
    }
  }

  /** Ends the works that an error concerns: those that the engine has ended, or all. */
  #fail(error: unknown): void {
    const { session } = this.#runner.engine;
    const works = [...this.#works];
    const ended = works.filter(([sequence]) => session.end(sequence) !== 'none');
    for (const [sequence, work] of ended.length > 0 ? ended : works) this.#end(sequence, work, error);
  }

  #end(sequence: number, work: Work, error: unknown): void {
    this.#runner.stop(sequence);
    this.#works.delete(sequence);
    work.fail(error);
  }
}
