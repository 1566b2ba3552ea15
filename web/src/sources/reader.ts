// A worker that reads a kept model while this one computes, by a handle of its own.
import { KiB } from '../constants.js';
import { ownScript } from '../worker-platform.js';
import type { Supply } from './ahead.js';
import { Blocks } from './blocks.js';
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
    const handle = await openHandle(file, true);
    globalThis.onmessage = ({ data }: MessageEvent<Request | undefined>) => {
      if (!data) {
        handle.close();
        return answer(false);
      }
      const { offset, size, block } = data;
      let got = 0;
      try {
        got = handle.read(new Uint8Array(block, 0, size), { at: offset });
      } catch {
        // Who asked reads it again, and tells why that fails.
      }
      answer({ block, got }, [block]);
    };
    answer(true);
  };
  globalThis.onmessage = ({ data }: MessageEvent<FileSystemFileHandle>) => void serve(data).catch(() => answer(false));
}

/** The worker seen from here. It has nothing to give before it has opened the file, nor once a read has failed. */
export class Reader implements Supply {
  readonly gap = 64 * KiB;
  readonly #file: FileSystemFileHandle;
  readonly #blocks = new Blocks();
  #worker: Worker | undefined;
  #isOpen = false;
  #hasFailed = false;
  /** Who waits for answers, which come in the order of what was asked. */
  readonly #waiting: ((answer: Answer | undefined) => void)[] = [];

  constructor(file: FileSystemFileHandle) {
    this.#file = file;
  }

  fetch(offset: number, size: number): Promise<Uint8Array> | undefined {
    if (this.#hasFailed) return undefined;
    if (!this.#worker) this.#start();
    if (!this.#isOpen) return undefined;
    const { buffer: block } = this.#blocks.take(size);
    const request: Request = { offset, size, block };
    this.#worker!.postMessage(request, [block]);
    return new Promise((resolve, reject) => {
      this.#waiting.push((answer) => {
        if (answer?.got === size) return resolve(new Uint8Array(answer.block, 0, size));
        this.#hasFailed = true;
        reject(new Error('The run could not be read.'));
      });
    });
  }

  give(bytes: Uint8Array<ArrayBuffer>): void {
    this.#blocks.give(bytes);
  }

  /** Resolves when the worker has let go of the file. */
  async close(): Promise<void> {
    if (this.#isOpen) {
      this.#worker!.postMessage(undefined);
      await new Promise((resolve) => this.#waiting.push(resolve));
    }
    this.#end();
  }

  #start(): void {
    try {
      const { address, type } = ownScript();
      this.#worker = new Worker(address, { type, name: READER });
    } catch {
      this.#hasFailed = true;
      return;
    }
    this.#worker.onerror = () => this.#end();
    this.#worker.onmessage = ({ data }: MessageEvent<Answer | boolean>) => {
      if (typeof data === 'object') this.#waiting.shift()?.(data);
      else if (data) this.#isOpen = true;
      else this.#end();
    };
    this.#worker.postMessage(this.#file);
  }

  #end(): void {
    this.#isOpen = false;
    this.#hasFailed = true;
    this.#worker?.terminate();
    for (const tell of this.#waiting.splice(0)) tell(undefined);
  }
}
