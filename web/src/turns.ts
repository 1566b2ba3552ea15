// Who may compute: one tab at a time, in the order in which they asked.
import { QSFError } from './errors.js';

export class Turns {
  #owner: string | undefined;
  /** Whose sequence the engine holds. */
  #last: string | undefined;
  readonly #waiting: { tab: string; enter: () => void; leave: (error: QSFError) => void }[] = [];

  /** Resolves when it is this tab's turn. One that goes on with a sequence must have been the last. */
  async take(tab: string, anew: boolean): Promise<void> {
    if (this.#owner === tab) throw new QSFError('bad_state', 'A generation is running on this model in this tab.');
    if (this.#owner !== undefined) {
      await new Promise<void>((enter, leave) => this.#waiting.push({ tab, enter, leave }));
    }
    this.#owner = tab;
    if (!anew && this.#last !== tab) {
      this.give(tab);
      throw new QSFError('bad_state', 'Another tab used the shared engine, so there is nothing to continue.');
    }
    this.#last = tab;
  }

  owns(tab: string): boolean {
    return this.#owner === tab;
  }

  /** Throws for a generation that began with another engine. */
  check(tab: string): void {
    if (this.#owner === tab) return;
    throw new QSFError('cancelled', 'The tab that computed this generation was closed; ask again.');
  }

  /** Ends a tab's turn, or its waiting. */
  give(tab: string): void {
    for (const [i, one] of [...this.#waiting.entries()].reverse()) {
      if (one.tab !== tab) continue;
      this.#waiting.splice(i, 1);
      one.leave(new QSFError('cancelled', 'The generation was stopped before its turn.'));
    }
    if (this.#owner !== tab) return;
    const next = this.#waiting.shift();
    this.#owner = next?.tab;
    next?.enter();
  }
}
