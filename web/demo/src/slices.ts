// Long work in slices, between which the page answers its visitor.

/** Milliseconds of a slice. Longer ones delay input, shorter ones spend more time between them. */
const SLICE = 8;

/** Resolves in a later task. Input and frames may come before it. A timer may wait a second in a tab that is not shown. */
export function nextTask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

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
