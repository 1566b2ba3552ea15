// Workers of the package's own script that work beside the one that starts them.
import { nameOther, ownScript } from '../worker-platform.js';

/** Milliseconds in which such a worker must answer. */
export const PATIENCE = 10_000;

/** That a worker has opened what it was given, or never will. */
export class Opening {
  /** Says that it is known which. */
  settle!: () => void;
  readonly #settled = new Promise<void>((resolve) => (this.settle = resolve));

  /** Then has the file let go of; `end`, which is to settle both, is called where that takes too long. */
  async close(letGo: () => Promise<unknown>, end: () => void): Promise<void> {
    const late = setTimeout(end, PATIENCE);
    await this.#settled;
    await letGo();
    clearTimeout(late);
  }
}

/** Starts one, which knows by its name what it is to do; undefined where there is none to be had. */
export function startBeside<T>(task: string, told: (message: T) => void, failed: () => void): Worker | undefined {
  const { address, type } = ownScript();
  let worker: Worker;
  try {
    worker = new Worker(address, { type, name: nameOther(task) });
  } catch {
    return undefined;
  }
  worker.onerror = (event) => {
    // Else it would be this worker's error too.
    event.preventDefault();
    failed();
  };
  worker.onmessage = ({ data }: MessageEvent<T>) => told(data);
  return worker;
}
