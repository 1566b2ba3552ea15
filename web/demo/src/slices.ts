// Long work in slices, between which the page answers its visitor.

/** Milliseconds of a slice. Longer ones delay input, shorter ones spend more time between them. */
const SLICE = 8;

/** Resolves in a later task. Input and frames may come before it. */
export const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/**
 * Runs the steps of `work` in slices, the first one at once. Each slice is run by `around`. Returns a function that ends
 * the work.
 */
export function inSlices(work: Iterator<void>, around: (slice: () => void) => void): () => void {
  let isOver = false;
  const slice = () => {
    const end = performance.now() + SLICE;
    do isOver ||= work.next().done === true;
    while (!isOver && performance.now() < end);
  };
  const run = () => {
    if (isOver) return;
    around(slice);
    setTimeout(run, 0);
  };
  run();
  return () => (isOver = true);
}

/** Runs the steps of `work` in slices, the first one at once. Resolves with its result, and rejects if it throws. */
export async function sliced<T>(work: Iterator<void, T>): Promise<T> {
  for (;;) {
    const end = performance.now() + SLICE;
    do {
      const { done, value } = work.next();
      if (done) return value;
    } while (performance.now() < end);
    await nextTask();
  }
}
