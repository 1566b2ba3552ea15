// The turns of tabs: one tab at a time computes, in the order of their requests.
import { QSFError } from '../errors.js';

export class Turns {
  #owner: string | undefined;
  /** The number of the current turn. */
  turn = 0;
  /** The tab whose sequence the engine has. */
  #last: string | undefined;
  readonly #waiting: { tab: string; enter: () => void; leave: (error: QSFError) => void }[] = [];

  /**
   * Resolves when it is this tab's turn. A call that continues a sequence must come from the last tab; otherwise
   * rejects with bad_state.
   */
  async take(tab: string, anew: boolean): Promise<void> {
    if (this.#owner === tab) throw new QSFError('bad_state', 'A generation is running on this model in this tab.');
    if (this.#owner !== undefined) {
      await new Promise<void>((enter, leave) => this.#waiting.push({ tab, enter, leave }));
    }
    this.#owner = tab;
    this.turn++;
    if (!anew && this.#last !== tab) {
      this.give(tab);
      throw new QSFError('bad_state', 'Another tab used the shared engine, so there is nothing to continue.');
    }
    this.#last = tab;
  }

  owns(tab: string): boolean {
    return this.#owner === tab;
  }

  /** Throws cancelled for a generation that began with another engine. */
  check(tab: string): void {
    if (this.#owner === tab) return;
    throw new QSFError('cancelled', 'The tab that computed this generation was closed; ask again.');
  }

  /** Removes a tab from the queue, and ends its turn if it is `turn`. */
  give(tab: string, turn = this.turn): void {
    for (const [i, one] of [...this.#waiting.entries()].reverse()) {
      if (one.tab !== tab) continue;
      this.#waiting.splice(i, 1);
      one.leave(new QSFError('cancelled', 'The generation was stopped before its turn.'));
    }
    if (this.#owner !== tab || this.turn !== turn) return;
    const next = this.#waiting.shift();
    this.#owner = next?.tab;
    next?.enter();
  }
}
