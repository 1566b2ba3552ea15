// The agreement between the package's two scripts in a shared or service worker, where the one that a page would run in a
// worker is imported: it offers an engine in the thread of both.

/** The name on the global object, which bundles of both scripts have in common. */
const OFFER = Symbol.for('qsf.thread');

/** Starts an engine, and returns the port for its calls. */
export type StartInThread = () => MessagePort;

export function offerThread(start: StartInThread): void {
  Object.defineProperty(globalThis, OFFER, { value: start, configurable: true });
}

/** Returns an engine of this thread in the form of a worker; undefined if none is offered. */
export function engineInThread(): Worker | undefined {
  const start = (globalThis as { [OFFER]?: StartInThread })[OFFER];
  if (start === undefined) return undefined;
  const port = start();
  return Object.assign(port, { terminate: () => port.close() }) as unknown as Worker;
}
