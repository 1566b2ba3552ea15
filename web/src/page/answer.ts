// The streams that generate() and chat() return. A generation has one source of items and any number of readers: each
// gets every item, and the one that asks first makes the source give the next.
import type { GenerationResult, GenerationStream } from '../types.js';

/** The items of a generation, in lists as they come. Nothing is computed before they are first asked for. */
export type Items<T, R extends GenerationResult> = AsyncGenerator<readonly T[], R, undefined>;

/** Settles a generation's result. Only the first call has an effect. */
export interface Outcome<R extends GenerationResult> {
  resolve(result: R): void;
  reject(error: unknown): void;
}

/**
 * Returns a generation's stream, and a function that begins a reader of all items. `begin` gets the outcome, which it
 * must settle before its items end, except if they were left before the first. `textOf` returns an item's text for the
 * user, or undefined if it has none.
 */
export function streamOf<T, R extends GenerationResult>(
  begin: (outcome: Outcome<R>) => Items<T, R>,
  textOf: (item: T) => string | undefined,
): { stream: GenerationStream<R>; items: () => AsyncGenerator<T, R, undefined> } {
  let outcome!: Outcome<R>;
  const result = new Promise<R>((resolve, reject) => (outcome = { resolve, reject }));
  let failed = false;
  result.catch(() => (failed = true)); // every reader throws the same error
  const source = begin(outcome);
  const items: T[] = [];
  /** The source's next items while they are awaited, and its end or failure for ever. */
  let pending: Promise<boolean> | undefined;

  /** Waits for more items. Resolves with false at the end. */
  const more = () =>
    (pending ??= source.next().then(({ value, done }) => {
      if (done === true) return false;
      items.push(...value);
      pending = undefined;
      return true;
    }));

  /** Yields the value of `view` for each item, except undefined. */
  async function* read<V>(view: (item: T) => V | undefined): AsyncGenerator<V, R, undefined> {
    try {
      for (let i = 0; ;) {
        if (i === items.length || failed) {
          if (await more()) continue;
          return await result;
        }
        const value = view(items[i++]!);
        if (value !== undefined) yield value;
      }
    } finally {
      await source.return(undefined as never); // ends what a left loop began
    }
  }

  const drained = async () => {
    while (await more());
  };
  const text = async () => {
    await drained();
    return items.map((item) => textOf(item) ?? '').join('');
  };
  const stream = Object.assign(read(textOf), {
    text,
    then: (...then) => text().then(...then),
    catch: (caught) => text().catch(caught),
    finally: (ended) => text().finally(ended),
  } satisfies Pick<GenerationStream, 'text' | 'then' | 'catch' | 'finally'>);
  Object.defineProperty(stream, 'result', {
    get: () => {
      drained().catch(() => {});
      return result;
    },
  });
  return { stream: stream as typeof stream & { readonly result: Promise<R> }, items: () => read((item) => item) };
}
