// A worker that reads a kept model while this one computes, through a handle of its own.
import { KiB } from '../constants.js';
import type { Supply } from './ahead.js';
import { Opening, PATIENCE, startBeside } from './beside.js';
import { SyncFile, openHandle } from './opfs.js';

/** The worker's name, which states its task to the script. */
export const READER = 'qsf-reader';

type Bytes = Uint8Array<ArrayBuffer>;
/** A read. Its memory comes back with the bytes that there were. */
interface Request {
  offset: number;
  into: Bytes;
}

/**
 * Runs in that worker: opens the file of the first message and serves the reads of the others, until a message without
 * a read.
 */
export function serveReads(): void {
  const answer = (answer: Bytes | boolean, transfer: ArrayBuffer[] = []) =>
    globalThis.postMessage(answer, { transfer });
  const serve = async (file: FileSystemFileHandle) => {
    const model = new SyncFile(await openHandle(file));
    globalThis.onmessage = ({ data }: MessageEvent<Request | undefined>) => {
      if (!data) {
        model.close();
        return answer(new Uint8Array());
      }
      const { offset, into } = data;
      answer(into.subarray(0, model.read(into, offset)), [into.buffer]);
    };
    answer(true);
  };
  globalThis.onmessage = ({ data }: MessageEvent<FileSystemFileHandle>) => serve(data).catch(() => answer(false));
}

/** The worker from this side. After a failure or a late answer it is terminated and gives nothing. */
export class Reader implements Supply {
  readonly gap = 64 * KiB;
  readonly #worker: Worker | undefined;
  #isOpen = false;
  readonly #opening = new Opening();
  /** The callers that wait for answers, which arrive in the order of the reads. */
  readonly #waiting: ((bytes?: Bytes) => void)[] = [];

  /** Calls `opened` when it can read the file, if ever. */
  constructor(file: FileSystemFileHandle, opened: () => void) {
    const told = (answer: Bytes | boolean) => {
      if (answer === true) {
        this.#isOpen = true;
        this.#opening.settle();
        opened();
      } else if (answer) this.#waiting.shift()?.(answer);
      else this.#end();
    };
    this.#worker = startBeside(READER, file, told, () => this.#end());
  }

  fetch(offset: number, into: Bytes): Promise<Bytes | undefined> | undefined {
    if (!this.#isOpen) return undefined;
    const { length } = into;
    return this.#ask({ offset, into }, [into.buffer]).then((bytes) => (bytes?.length === length ? bytes : this.#end()));
  }

  /** Resolves when the worker has closed the file. */
  async close(): Promise<void> {
    if (!this.#worker) return;
    const letGo = async () => this.#isOpen && (await this.#ask());
    await this.#opening.close(letGo, () => this.#end());
  }

  #ask(request?: Request, transfer: ArrayBuffer[] = []): Promise<Bytes | undefined> {
    this.#worker!.postMessage(request, transfer);
    const late = setTimeout(() => this.#end(), PATIENCE);
    return new Promise((resolve) => {
      this.#waiting.push((bytes) => {
        clearTimeout(late);
        resolve(bytes);
      });
    });
  }

  #end(): undefined {
    this.#isOpen = false;
    this.#opening.settle();
    this.#worker?.terminate();
    for (const tell of this.#waiting.splice(0)) tell();
  }
}
