// Workers of the package's own script that work beside the one that starts them.
import { ownScript } from '../worker-platform.js';

/** Starts one, which knows by its name what it is; undefined where there is none to be had. */
export function startBeside<T>(name: string, told: (message: T) => void, failed: () => void): Worker | undefined {
  const { address, type } = ownScript();
  let worker: Worker;
  try {
    worker = new Worker(address, { type, name });
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
