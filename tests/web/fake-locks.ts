// Web Locks in memory: exclusive ones, had in the order in which they were asked for.

interface Options {
  signal?: AbortSignal;
  ifAvailable?: boolean;
}
type Work = (lock: object | null) => unknown;

export class FakeLock {
  readonly name: string;
  state: 'waits' | 'is held' | 'is over' = 'waits';
  /** Lets go of it, as the browser does when its tab ends. */
  readonly end: () => void;
  /** Calls what was to be called, and resolves when it has ended. */
  readonly hold: () => Promise<unknown>;

  constructor(name: string, hold: () => Promise<unknown>, end: () => void) {
    this.name = name;
    this.hold = hold;
    this.end = end;
  }
}

export class FakeLocks {
  /** All that were ever asked for. */
  readonly asked: FakeLock[] = [];

  request(name: string, ...[how, what]: [Work] | [Options, Work]): Promise<unknown> {
    const work = what ?? (how as Work);
    const { signal, ifAvailable } = what ? (how as Options) : {};
    if (ifAvailable && this.#isTaken(name)) return Promise.resolve(work(null));
    return new Promise((resolve, reject) => {
      const hold = async () => resolve(await work({}));
      const lock = new FakeLock(
        name,
        () => hold().catch(reject),
        () => {
          lock.state = 'is over';
          this.#give(name);
        },
      );
      this.asked.push(lock);
      const giveUp = () => {
        if (lock.state !== 'waits') return;
        lock.state = 'is over';
        reject(signal!.reason as Error);
      };
      signal?.addEventListener('abort', giveUp);
      if (signal?.aborted) return giveUp();
      // As in a browser, nothing is had at once.
      setTimeout(() => this.#give(name));
    });
  }

  #isTaken(name: string): boolean {
    return this.asked.some((lock) => lock.name === name && lock.state === 'is held');
  }

  #give(name: string): void {
    const next = this.asked.find((lock) => lock.name === name && lock.state === 'waits');
    if (!next || this.#isTaken(name)) return;
    next.state = 'is held';
    void next.hold().then(() => next.state === 'is held' && next.end());
  }
}
