// A worker that reads a kept model while this one computes, by a handle of its own.
import { KiB } from '../constants.js';
import { ownScript } from '../worker-platform.js';
import type { Supply } from './ahead.js';
import { openHandle } from './opfs.js';

/** The worker's name, by which the one script knows what it is. */
export const READER = 'qsf-reader';

/** A run to be read into a block, which comes back. */
interface Request {
  offset: number;
  size: number;
  block: ArrayBuffer;
}
interface Answer {
  block: ArrayBuffer;
  /** Bytes that were read. */
  got: number;
}

/** In that worker: opens the file that the first message brings and reads what the others ask for, until one brings nothing. */
export function serveReads(): void {
  const answer = (answer: Answer | boolean, transfer: ArrayBuffer[] = []) =>
    globalThis.postMessage(answer, { transfer });
  const serve = async (file: FileSystemFileHandle) => {
    const handle = await openHandle(file);
    globalThis.onmessage = ({ data }: MessageEvent<Request | undefined>) => {
      if (!data) {
        handle.close();
        return answer(false);
      }
      const { offset, size, block } = data;
      answer({ block, got: handle.read(new Uint8Array(block, 0, size), { at: offset }) }, [block]);
    };
    answer(true);
  };
  globalThis.onmessage = ({ data }: MessageEvent<FileSystemFileHandle>) => void serve(data);
}

/** The worker seen from here. It has nothing to give before it has opened the file, nor once it has failed. */
export class Reader implements Supply {
  readonly gap = 64 * KiB;
  readonly #file: FileSystemFileHandle;
  /** null where none can be started. */
  #worker: Worker | null | undefined;
  #isOpen = false;
  /** Who waits for answers, which come in the order of what was asked. */
  readonly #waiting: ((answer?: Answer) => void)[] = [];

  constructor(file: FileSystemFileHandle) {
    this.#file = file;
  }

  fetch(offset: number, { buffer: block, length: size }: Uint8Array<ArrayBuffer>) {
    if (this.#worker === undefined) this.#start();
    if (!this.#isOpen) return undefined;
    return this.#ask({ offset, size, block }, [block]).then((answer) => {
      if (answer?.got === size) return new Uint8Array(answer.block, 0, size);
      this.#end();
      return undefined;
    });
  }

  /** Resolves when the worker has let go of the file. */
  async close(): Promise<void> {
    if (this.#isOpen) await this.#ask();
    this.#end();
  }

  #ask(request?: Request, transfer: ArrayBuffer[] = []): Promise<Answer | undefined> {
    this.#worker!.postMessage(request, transfer);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #start(): void {
    try {
      const { address, type } = ownScript();
      const worker = new Worker(address, { type, name: READER });
      worker.onerror = () => this.#end();
      worker.onmessage = ({ data }: MessageEvent<Answer | boolean>) => {
        if (data === true) this.#isOpen = true;
        else if (data) this.#waiting.shift()?.(data);
        else this.#end();
      };
      worker.postMessage(this.#file);
      this.#worker = worker;
    } catch {
      this.#worker = null;
    }
  }

  #end(): void {
    this.#isOpen = false;
    this.#worker?.terminate();
    for (const tell of this.#waiting.splice(0)) tell();
  }
}
