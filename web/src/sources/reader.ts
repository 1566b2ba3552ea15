// A worker that reads a kept model while this one computes, by a handle of its own.
import { KiB } from '../constants.js';
import type { Supply } from './ahead.js';
import { Opening, PATIENCE, startBeside } from './beside.js';
import { openHandle } from './opfs.js';

/** The worker's name, by which the one script knows what it is. */
export const READER = 'qsf-reader';

type Bytes = Uint8Array<ArrayBuffer>;
/** Bytes to be read; they come back, as many as there were. */
interface Request {
  offset: number;
  into: Bytes;
}

/** In that worker: opens the file that the first message brings and reads what the others ask for, until one brings nothing. */
export function serveReads(): void {
  const answer = (answer: Bytes | boolean, transfer: ArrayBuffer[] = []) =>
    globalThis.postMessage(answer, { transfer });
  const serve = async (file: FileSystemFileHandle) => {
    const handle = await openHandle(file);
    globalThis.onmessage = ({ data }: MessageEvent<Request | undefined>) => {
      if (!data) {
        handle.close();
        return answer(new Uint8Array());
      }
      const { offset, into } = data;
      answer(into.subarray(0, handle.read(into, { at: offset })), [into.buffer]);
    };
    answer(true);
  };
  globalThis.onmessage = ({ data }: MessageEvent<FileSystemFileHandle>) => serve(data).catch(() => answer(false));
}

/** The worker seen from here. Once it has failed, or is late, it is ended and gives nothing. */
export class Reader implements Supply {
  readonly gap = 64 * KiB;
  readonly #worker: Worker | undefined;
  #isOpen = false;
  readonly #opening = new Opening();
  /** Who waits for answers, which come in the order of what was asked. */
  readonly #waiting: ((bytes?: Bytes) => void)[] = [];

  /** `opened` is called when it can read the file, if ever. */
  constructor(file: FileSystemFileHandle, opened: () => void) {
    const told = (answer: Bytes | boolean) => {
      if (answer === true) {
        this.#isOpen = true;
        this.#opening.settle();
        opened();
      } else if (answer) this.#waiting.shift()?.(answer);
      else this.#end();
    };
    this.#worker = startBeside(READER, told, () => this.#end());
    this.#worker?.postMessage(file);
  }

  fetch(offset: number, into: Bytes): Promise<Bytes | undefined> | undefined {
    if (!this.#isOpen) return undefined;
    const { length } = into;
    return this.#ask({ offset, into }, [into.buffer]).then((bytes) => (bytes?.length === length ? bytes : this.#end()));
  }

  /** Resolves when the worker has let go of the file. */
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
