// A thread of Node with the interface of a browser's worker.
import { Worker as Thread } from 'node:worker_threads';
import type { TransferListItem } from 'node:worker_threads';

import { QSFError, messageOf } from '../errors.js';

/** The data that a script in such a worker gets. */
export interface WorkerData {
  name: string;
}

export class NodeWorker extends EventTarget {
  onmessage: ((event: MessageEvent) => void) | undefined;
  onerror: ((event: Event) => void) | undefined;
  readonly #thread: Thread;

  constructor(script: string | URL, { name = '' }: { name?: string } = {}) {
    super();
    const workerData: WorkerData = { name };
    this.#thread = new Thread(new URL(script), { workerData, name });
    this.#thread.on('message', (data: unknown) => this.#tell(new MessageEvent('message', { data })));
    this.#thread.on('error', (error: Error) => this.#fail(error.message));
    this.#thread.on('exit', (code) => code !== 0 && this.#fail(`it ended with status ${code}`));
    this.#thread.on('messageerror', (error: Error) => this.#fail(error.message));
  }

  /** Throws unsupported_host for a Blob that views a file, because Node does not send one to another thread. */
  postMessage(data: unknown, transfer: TransferListItem[] = []): void {
    try {
      this.#thread.postMessage(data, transfer);
    } catch (cause) {
      if (!/file-backed blob/i.test(messageOf(cause))) throw cause;
      const advice = 'give the path of a model, or a Blob of the bytes of other files';
      throw new QSFError(
        'unsupported_host',
        `Node sends no Blob of fs.openAsBlob() to the engine's thread: ${advice}`,
        {
          cause,
        },
      );
    }
  }

  terminate(): void {
    void this.#thread.terminate();
  }

  #tell(event: MessageEvent): void {
    this.onmessage?.(event);
    this.dispatchEvent(event);
  }

  #fail(message: string): void {
    const event = Object.assign(new Event('error'), { message });
    this.onerror?.(event);
    this.dispatchEvent(event);
  }
}
