// Further workers of the package's own script, which a worker starts.
import { nameOther, ownScript } from '../worker/worker-platform.js';

/** Milliseconds in which such a worker must answer. */
export const PATIENCE = 10_000;

/** The moment from which a worker has opened its file, or never will. */
export class Opening {
  /** Marks the moment as reached. */
  settle!: () => void;
  readonly #settled = new Promise<void>((resolve) => (this.settle = resolve));

  /**
   * Waits for that moment, then releases the file. Calls `end`, which must settle both, if this takes longer than
   * PATIENCE.
   */
  async close(letGo: () => Promise<unknown>, end: () => void): Promise<void> {
    const late = setTimeout(end, PATIENCE);
    await this.#settled;
    await letGo();
    clearTimeout(late);
  }
}

/**
 * Starts a worker whose name states its task, and sends it a first message. Returns undefined if none can be started.
 */
export function startBeside<T>(
  task: string,
  first: unknown,
  told: (message: T) => void,
  failed: () => void,
): Worker | undefined {
  let worker: Worker | undefined;
  try {
    const { address, type } = ownScript();
    worker = new Worker(address, { type, name: nameOther(task) });
    worker.onerror = (event) => {
      // Otherwise it would be this worker's error too.
      event.preventDefault();
      failed();
    };
    worker.onmessageerror = failed;
    worker.onmessage = ({ data }: MessageEvent<T>) => told(data);
    worker.postMessage(first);
    return worker;
  } catch {
    worker?.terminate();
    return undefined;
  }
}
