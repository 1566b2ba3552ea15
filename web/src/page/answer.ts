// The streams that generate() and chat() return. A generation has one source of pieces and any number of readers: each
// gets every piece, and the one that asks first makes the source give the next.
import type { GenerationResult, GenerationStream } from '../types.js';

/** The pieces of a generation. Nothing is computed before it is first asked. */
export type Pieces = AsyncGenerator<string, GenerationResult, undefined>;

/** Settles a generation's result. Only the first call has an effect. */
export interface Outcome {
  resolve(result: GenerationResult): void;
  reject(error: unknown): void;
}

/**
 * Returns a generation's stream. `begin` gets the outcome, which it must settle before its pieces end, except if they
 * were left before the first.
 */
export function streamOf(begin: (outcome: Outcome) => Pieces): GenerationStream {
  let outcome!: Outcome;
  const result = new Promise<GenerationResult>((resolve, reject) => (outcome = { resolve, reject }));
  let failed = false;
  result.catch(() => (failed = true)); // every reader throws the same error
  const source = begin(outcome);
  const pieces: string[] = [];
  /** The source's next piece while it is awaited, and its end or failure for ever. */
  let pending: Promise<boolean> | undefined;

  /** Waits for one more piece. Resolves with false at the end. */
  const more = () =>
    (pending ??= source.next().then(({ value, done }) => {
      if (done === true) return false;
      pieces.push(value);
      pending = undefined;
      return true;
    }));

  async function* read(): Pieces {
    try {
      for (let i = 0; (!failed && i < pieces.length) || (await more());) yield pieces[i++]!;
      return await result;
    } finally {
      await source.return(undefined as never); // ends what a left loop began
    }
  }

  const drained = async () => {
    while (await more());
  };
  const text = async () => {
    await drained();
    return pieces.join('');
  };
  const stream = Object.assign(read(), {
    text,
    then: (...then) => text().then(...then),
    catch: (caught) => text().catch(caught),
    finally: (ended) => text().finally(ended),
  } satisfies Pick<GenerationStream, 'text' | 'then' | 'catch' | 'finally'>);
  return Object.defineProperty(stream, 'result', {
    get: () => {
      drained().catch(() => {});
      return result;
    },
  }) as typeof stream & { readonly result: Promise<GenerationResult> };
}
