// A worker that fills shared memory from a kept model while this one computes, through a handle of its own. Reads and
// their ends are in memory that both see, because a message for each piece would take as long as a copy of it.
import { KiB } from '../constants.js';
import { tick } from '../worker/tick.js';
import { Opening, PATIENCE, startBeside } from './beside.js';
import { SyncFile, openHandle } from './opfs.js';

/** The worker's name, which states its task to the script. */
export const FILLER = 'qsf-filler';
/** Reads of fewer bytes are faster without another worker. */
const FEW = 16 * KiB;
/** Milliseconds that the worker sleeps before it gives messages a turn. */
const SLEEP = 1000;
/** Milliseconds between two checks of a read that must not be interrupted. */
const LOOK = 10;
/** Milliseconds for which a thread polls before it sleeps, because waking up takes as long. */
const AWAKE = 0.1;
/** Polls between two readings of the clock. */
const LOOKS = 100;
/**
 * After IN_VAIN sleeps in a row, a thread polls only before one in SELDOM sleeps, because both threads may share a
 * processor.
 */
const [IN_VAIN, SELDOM] = [4, 16];

/**
 * The shared memory: the worker's state, the number of requested reads, the number of reads that have succeeded, the
 * number of sleeping threads, then the reads in a ring.
 */
const DOING = 0;
const ASKED = 1;
const DONE = 2;
const SLEEPERS = 3;
const READS = 4;
/**
 * Words of a read: its offset in the file in two halves, its offset in memory, and its size. A read of no bytes makes
 * the worker close the file.
 */
const WORDS = 4;
/** Reads in the ring, one of which is for closing the file; a power of two. */
const MOST = 64;
const [IDLE, READING, ENDED] = [0, 1, 2];
const HALF = 2 ** 32;

type Read = [high: number, low: number, at: number, size: number];
const place = (read: number) => READS + WORDS * (read & (MOST - 1));
/** Returns the next count. Counts wrap around as their places in memory do. */
const after = (count: number) => (count + 1) | 0;

/** One thread that waits for counts. */
class Waiter {
  readonly #state: Int32Array;
  /** Sleeps in a row. */
  #slept = 0;

  constructor(state: Int32Array) {
    this.#state = state;
  }

  /** Whether a count changes within `ms` milliseconds. Polls for a while before it sleeps. */
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
    // A notification may be for a change that was already seen.
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

/** Sets a count, and wakes the threads that sleep until it changes. */
function change(state: Int32Array, at: number, count: number): void {
  Atomics.store(state, at, count);
  if (Atomics.load(state, SLEEPERS) > 0) Atomics.notify(state, at);
}

interface Given {
  file: FileSystemFileHandle;
  memory: SharedArrayBuffer;
  state: Int32Array;
}

/** Runs in that worker: opens the file of the first message and serves the reads. */
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

/** The worker from this side. After a failure or a late answer it is terminated and fills nothing. */
export class Filler {
  readonly #state = new Int32Array(new SharedArrayBuffer((READS + WORDS * MOST) * Int32Array.BYTES_PER_ELEMENT));
  readonly #waiter = new Waiter(this.#state);
  readonly #worker: Worker | undefined;
  /** Whether it fills. */
  isOpen = false;
  readonly #opening = new Opening();
  /** The callers that wait for reads, in the order of the reads. */
  readonly #waiting: ((isThere: boolean) => void)[] = [];
  #asked = 0;
  #told = 0;
  /** The time of the last success, or of the first read after an idle time. */
  #since = 0;

  /** Fills parts of `memory`. */
  constructor(file: FileSystemFileHandle, memory: SharedArrayBuffer) {
    const told = (isOpen: boolean) => {
      if (!isOpen) return this.#end();
      this.isOpen = true;
      this.#opening.settle();
    };
    const given: Given = { file, memory, state: this.#state };
    this.#worker = startBeside(FILLER, given, told, () => this.#end());
  }

  /**
   * Fills `into`. Undefined if the read is too small or too many reads wait; false if the worker gives up, now or
   * later. Nothing is written to `into` after the promise has settled.
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

  /** Resolves when the worker has closed the file. */
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

  /** Settles the reads that have succeeded. */
  #tell(): void {
    const done = Atomics.load(this.#state, DONE);
    for (; this.#told !== done; this.#told = after(this.#told)) this.#waiting.shift()!(true);
  }

  /**
   * Waits for a read that is under way, because its bytes could otherwise arrive when the memory has other contents.
   */
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
