// Turns of the worker's message queue. A MessageChannel gives one at once; browsers delay timers.
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();

/** Resolves after the messages that have arrived so far were handled. */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(undefined);
  });
}

/** A promise that can be settled from outside, again and again. */
export class Signal {
  #wake!: () => void;
  #next!: Promise<void>;

  constructor() {
    this.#renew();
  }

  /** Resolves at the next notify(). */
  wait(): Promise<void> {
    return this.#next;
  }

  notify(): void {
    this.#wake();
    this.#renew();
  }

  #renew(): void {
    this.#next = new Promise((resolve) => (this.#wake = resolve));
  }
}
