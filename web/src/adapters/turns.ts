// The turns of an adapter's calls: a model computes one thing at a time, and callers of a server may ask for several.

/** The end of the last call for each model. */
const last = new WeakMap<object, Promise<unknown>>();

/**
 * Runs `work` after all earlier work for the same model. Rejects with the signal's reason when it aborts; work that has
 * not begun then never begins.
 */
export function inTurn<T>(model: object, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  const mine = (last.get(model) ?? Promise.resolve()).then(() => {
    signal?.throwIfAborted();
    return work();
  });
  last.set(
    model,
    mine.catch(() => {}),
  );
  return orAborted(mine, signal);
}

/** Returns the outcome of a promise, or rejects with the signal's reason when it aborts. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** A signal that aborts with others. */
interface Following {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Ends the following. Signals that are used for many calls would keep something of each. */
  end(): void;
}

/** Returns a signal that aborts with each of the signals, until it is ended. */
export function following(...signals: (AbortSignal | undefined)[]): Following {
  const controller = new AbortController();
  const listening = new AbortController();
  for (const signal of signals) {
    if (signal?.aborted) controller.abort(signal.reason);
    signal?.addEventListener('abort', () => controller.abort(signal.reason), { once: true, signal: listening.signal });
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    end: () => listening.abort(),
  };
}

/**
 * Returns a stream of the items in the model's turn, once it has `ahead` of them, so that an error before these rejects.
 * Items are computed without waiting for a reader, because the next turn waits for their end. A cancelled stream and each
 * aborted signal abort the signal of `begin`.
 */
export function streamInTurn<T>(
  model: object,
  signals: AbortSignal | undefined | readonly (AbortSignal | undefined)[],
  ahead: number,
  begin: (signal: AbortSignal) => AsyncIterable<T> | Promise<AsyncIterable<T>>,
): Promise<ReadableStream<T>> {
  const abort = following(...[signals].flat());
  return new Promise((resolve, reject) => {
    const work = async () => {
      const items = await begin(abort.signal);
      let left = false;
      let controller!: ReadableStreamDefaultController<T>;
      const stream = new ReadableStream<T>({
        start: (own) => void (controller = own),
        cancel: (reason) => {
          left = true;
          abort.abort(reason);
        },
      });
      let count = 0;
      try {
        for await (const item of items) {
          controller.enqueue(item);
          if (++count === ahead) resolve(stream);
        }
        controller.close();
        resolve(stream);
      } catch (error) {
        if (left) return;
        controller.error(error);
        throw error;
      }
    };
    void inTurn(model, abort.signal, work).catch(reject).finally(abort.end);
  });
}
