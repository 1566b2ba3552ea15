// A worker that fills shared memory from a kept model while this one computes, by a handle of its own. What is to be read and
// what has been stands in memory that both see: a message for each piece would take as long as copying it.
import { KiB } from '../constants.js';
import { tick } from '../tick.js';
import { Opening, PATIENCE, startBeside } from './beside.js';
import { SyncFile, openHandle } from './opfs.js';

/** The worker's name, by which the one script knows what it is. */
export const FILLER = 'qsf-filler';
/** Bytes that are read sooner than another worker is asked. */
const FEW = 16 * KiB;
/** Milliseconds that the worker sleeps before it gives messages a turn. */
const SLEEP = 1000;
/** Milliseconds between two looks at a read that is not to be cut off. */
const LOOK = 10;
/** Milliseconds in which a thread looks for what it waits for before it sleeps, since waking up takes as long. */
const AWAKE = 0.1;
/** Looks between two at the clock. */
const LOOKS = 100;
/** Sleeps in a row after which a thread looks before every so manieth alone: both may have to share a processor. */
const [IN_VAIN, SELDOM] = [4, 16];

/** What both see: what the worker does, how many reads were asked for and how many have ended well, then the reads in turn. */
const DOING = 0;
const ASKED = 1;
const DONE = 2;
const SLEEPERS = 3;
const READS = 4;
/** Where a read begins in the file, in two halves; where it goes, and its bytes: with none the worker lets go of the file. */
const WORDS = 4;
/** Reads that have a place, one of which is to let go of the file; a power of two. */
const MOST = 64;
const [IDLE, READING, ENDED] = [0, 1, 2];
const HALF = 2 ** 32;

type Read = [high: number, low: number, at: number, size: number];
const place = (read: number) => READS + WORDS * (read & (MOST - 1));
/** Counts go round as their places in memory do. */
const after = (count: number) => (count + 1) | 0;

/** One thread that waits for counts. */
class Waiter {
  readonly #state: Int32Array;
  /** How often in a row it slept. */
  #slept = 0;

  constructor(state: Int32Array) {
    this.#state = state;
  }

  /** Whether a count is another one now, or is so many milliseconds later: looks for a while before it sleeps. */
  changed(at: number, count: number, ms: number): boolean {
    if (Atomics.load(this.#state, at) !== count) return true;
    if ((this.#slept < IN_VAIN || this.#slept % SELDOM === 0) && this.#look(at, count)) {
      this.#slept = 0;
      return true;
    }
    this.#slept++;
    Atomics.add(this.#state, SLEEPERS, 1);
    Atomics.wait(this.#state, at, count, ms);
    Atomics.sub(this.#state, SLEEPERS, 1);
    // Who wakes may do so for a count that has been seen already.
    return Atomics.load(this.#state, at) !== count;
  }

  #look(at: number, count: number): boolean {
    const end = performance.now() + AWAKE;
    do {
      for (let i = 0; i < LOOKS; i++) if (Atomics.load(this.#state, at) !== count) return true;
    } while (performance.now() < end);
    return false;
  }
}

/** Sets a count, and wakes who sleeps until then. */
function change(state: Int32Array, at: number, count: number): void {
  Atomics.store(state, at, count);
  if (Atomics.load(state, SLEEPERS) > 0) Atomics.notify(state, at);
}

interface Given {
  file: FileSystemFileHandle;
  memory: SharedArrayBuffer;
  state: Int32Array;
}

/** In that worker: opens the file that the first message brings and reads what is asked for. */
export function serveFills(): void {
  const serve = async ({ file, memory, state }: Given) => {
    const model = new SyncFile(await openHandle(file));
    const waiter = new Waiter(state);
    globalThis.postMessage(true);
    try {
      for (let done = 0; ; change(state, DONE, (done = after(done)))) {
        while (!waiter.changed(ASKED, done, SLEEP)) await tick();
        const [high, low, at, size] = state.subarray(place(done)) as unknown as Read;
        if (size === 0) return;
        if (Atomics.compareExchange(state, DOING, IDLE, READING) !== IDLE) return;
        const got = model.read(new Uint8Array(memory, at >>> 0, size), (high >>> 0) * HALF + (low >>> 0));
        if (got < size) throw new Error('the kept file is short');
        Atomics.store(state, DOING, IDLE);
      }
    } finally {
      model.close();
      Atomics.store(state, DOING, ENDED);
      Atomics.notify(state, DONE);
    }
  };
  const end = () => globalThis.postMessage(false);
  globalThis.onmessage = ({ data }: MessageEvent<Given>) => serve(data).then(end, end);
}

/** The worker seen from here. Once it has failed, or is late, it is ended and fills nothing. */
export class Filler {
  readonly #state = new Int32Array(new SharedArrayBuffer((READS + WORDS * MOST) * Int32Array.BYTES_PER_ELEMENT));
  readonly #waiter = new Waiter(this.#state);
  readonly #worker: Worker | undefined;
  /** Whether it fills. */
  isOpen = false;
  readonly #opening = new Opening();
  /** Who waits for reads, in the order of what was asked. */
  readonly #waiting: ((isThere: boolean) => void)[] = [];
  #asked = 0;
  #told = 0;
  /** When something was told last, or first asked for since. */
  #since = 0;

  /** Fills places in `memory`. */
  constructor(file: FileSystemFileHandle, memory: SharedArrayBuffer) {
    const told = (isOpen: boolean) => {
      if (!isOpen) return this.#end();
      this.isOpen = true;
      this.#opening.settle();
    };
    this.#worker = startBeside(FILLER, told, () => this.#end());
    this.#worker?.postMessage({ file, memory, state: this.#state } satisfies Given);
  }

  /**
   * Fills a place; false when it gives up, now or after all, and undefined where there is too much to do or too little. Nothing
   * is written there once the promise has settled.
   */
  fill(offset: number, into: Uint8Array): Promise<boolean> | undefined {
    if (!this.isOpen || into.length < FEW || this.#waiting.length === MOST - 1) return undefined;
    return this.#ask(offset, into.byteOffset, into.length);
  }

  /** As ByteSource's. */
  poll(ms: number): boolean | undefined {
    if (this.#waiting.length === 0) return undefined;
    const before = this.#told;
    if (ms > 0) this.#waiter.changed(DONE, before, ms);
    this.#tell();
    const now = performance.now();
    if (this.#told !== before) this.#since = now;
    else if (Atomics.load(this.#state, DOING) === ENDED || now - this.#since > PATIENCE) this.#end();
    return this.#told !== before;
  }

  /** Resolves when the worker has let go of the file. */
  async close(): Promise<void> {
    if (!this.#worker) return;
    const letGo = async () => this.isOpen && (await this.#ask(0, 0, 0));
    await this.#opening.close(letGo, () => this.#end());
  }

  #ask(offset: number, at: number, size: number): Promise<boolean> {
    if (this.#waiting.length === 0) this.#since = performance.now();
    const read: Read = [Math.floor(offset / HALF), offset % HALF, at, size];
    this.#state.set(read, place(this.#asked));
    change(this.#state, ASKED, (this.#asked = after(this.#asked)));
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Tells of the reads that have ended well. */
  #tell(): void {
    const done = Atomics.load(this.#state, DONE);
    for (; this.#told !== done; this.#told = after(this.#told)) this.#waiting.shift()!(true);
  }

  /** A read that is under way is waited for: its bytes would come when others may lie there. */
  #end(): void {
    this.isOpen = false;
    this.#opening.settle();
    if (Atomics.compareExchange(this.#state, DOING, IDLE, ENDED) === READING) {
      setTimeout(() => this.#end(), LOOK);
      return;
    }
    this.#tell();
    this.#worker?.terminate();
    for (const tell of this.#waiting.splice(0)) tell(false);
  }
}
