// Reading ahead of who asks. A pass asks for the same pieces in the same order each time, so what came behind a piece
// the last time is on its way before it is asked for, and neighbours in the file come as one run.
import { MiB } from '../constants.js';
import { Blocks } from './blocks.js';

/** Bytes of a run, unless a piece alone has more. */
const RUN = MiB;
/** Runs held: one that is being used, two on their way. */
const RUNS = 3;
/** Pieces in their known order that make up for one that was in none; and how many of them count. */
const SURPRISE = 4;
const MOST_TRUST = 8;
/** Pieces that are in no run, one after the other, before these are given up. */
const LOST = 2;

/** Where runs come from. */
export interface Supply {
  /** Bytes that nobody wants and that may be read along between two pieces. */
  readonly gap: number;
  /** Fills `into`, or others of its size, with the bytes at `offset`; undefined when it gives up, now or after all. */
  fetch(offset: number, into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined> | undefined;
}

interface Piece {
  offset: number;
  size: number;
  /** What was asked for behind it the last time, and what behind that. */
  next?: Piece;
  third?: Piece;
}

interface Run {
  offset: number;
  end: number;
  last: Piece;
  bytes?: Uint8Array<ArrayBuffer> | undefined;
  /** Settles when there are bytes, or will be none. */
  arriving: Promise<unknown>;
}

export class ReadAhead {
  readonly #supply: Supply;
  readonly #trial: Trial | undefined;
  readonly #blocks = new Blocks();
  readonly #pieces = new Map<number, Piece>();
  /** In the order in which they are expected to be used. */
  #runs: Run[] = [];
  #before: Piece | undefined;
  #last: Piece | undefined;
  /** Above 0 while pieces are asked for in the order that is known. */
  #trust = 0;
  #lost = 0;

  /** With a trial, it is done only where that finds it faster. */
  constructor(supply: Supply, trial?: Trial) {
    this.#supply = supply;
    this.#trial = trial;
  }

  /**
   * Fills `into` with what was read ahead from `offset` on, at once or when it has come; false where it was not, or the
   * supply gave it up. Rejects with what the supply did.
   */
  read(offset: number, into: Uint8Array): boolean | Promise<boolean> {
    const piece = this.#learn(offset, into.length);
    if (this.#trust === MOST_TRUST) this.#trial?.pass(offset);
    const at = this.#runs.findIndex((run) => run.offset <= offset && offset + into.length <= run.end);
    const run = this.#runs[at];
    // Before its block can be given to another run.
    const got = run && take(run, offset, into);
    this.#free(at);
    this.#lost = run ? 0 : this.#lost + 1;
    const isOn = this.#trust > 0 && this.#trial?.on !== false;
    if (!isOn || this.#lost > LOST) this.#free();
    if (isOn) this.#fill(piece);
    return got ?? false;
  }

  /** Gives up what was read ahead and what is known, which may be of what the file no longer holds. */
  forget(): void {
    this.#free();
    this.#pieces.clear();
    this.#before = this.#last = undefined;
    this.#trust = 0;
  }

  /**
   * Notes what came behind what. A look-up, which is another each time, is left out of it, and so is what had to make room
   * for one and is asked for again.
   */
  #learn(offset: number, size: number): Piece {
    let piece = this.#pieces.get(offset);
    if (piece?.size !== size) this.#pieces.set(offset, (piece = { offset, size }));
    const [first, second] = [this.#before, this.#last];
    this.#before = first === piece ? undefined : second;
    this.#last = piece;
    if (!first || !second || first === piece) return piece;
    if (first.next === second) {
      this.#trust = Math.min(this.#trust + 1, MOST_TRUST);
    } else if (first.next === piece || first.third === piece) {
      first.next = piece;
      this.#before = first;
      return piece;
    } else {
      first.next = second;
      this.#trust = Math.max(this.#trust - SURPRISE, -MOST_TRUST);
    }
    first.third = piece;
    return piece;
  }

  /** Asks for runs of what is expected behind what is on its way. */
  #fill(piece: Piece): void {
    let tip = this.#runs.at(-1)?.last ?? piece;
    while (this.#runs.length < RUNS && tip.next) {
      const { offset, size } = (tip = tip.next);
      if (this.#runs.some((run) => run.offset <= offset && offset < run.end)) return;
      let end = offset + size;
      for (let next = tip.next; next && next.offset >= end && next.offset <= end + this.#supply.gap; next = tip.next) {
        if (next.offset + next.size - offset > RUN) break;
        tip = next;
        end = next.offset + next.size;
      }
      const into = this.#blocks.take(end - offset);
      const fetched = this.#supply.fetch(offset, into);
      if (!fetched) return this.#blocks.give(into);
      const run: Run = { offset, end, last: tip, arriving: fetched };
      this.#runs.push(run);
      const fail = () => (this.#runs = this.#runs.filter((other) => other !== run));
      run.arriving = fetched.then((bytes) => (run.bytes = bytes) ?? fail());
      // Who waits for it is told.
      run.arriving.catch(fail);
    }
  }

  /** The first runs, or all: their blocks are for others once those who wait for bytes have them. */
  #free(count = RUNS): void {
    for (const run of this.#runs.splice(0, count)) {
      const give = () => run.bytes && this.#blocks.give(run.bytes);
      run.arriving.then(give, give);
    }
  }
}

/** Fills `into` from a run, at once or when that has come; false if it came to nothing. */
function take(run: Run, offset: number, into: Uint8Array): boolean | Promise<boolean> {
  const copy = () => {
    if (run.bytes) into.set(run.bytes.subarray(offset - run.offset, offset - run.offset + into.length));
    return !!run.bytes;
  };
  return run.bytes ? copy() : run.arriving.then(copy);
}

/** Passes before the first trial, since code that has just begun is slow. */
const WARMING = 16;
/** Passes of a trial, half of them with reading ahead, two at a time. */
const TRIED = 8;
/** Passes after which the next trial begins: soon where one was lost, in which something else may have had the machine. */
const [SOONEST, LATEST] = [16, 128];

/** What a pass may take of the other's time, since the second worker takes a core. */
const WORTH = 0.9;
const UNTRIED = [Infinity, Infinity];
const shortest = (times: number[]) => times.sort((a, b) => a - b).slice(0, 2);
const sum = (times: number[]) => times.reduce((a, b) => a + b);

/** Finds out by the time that passes take whether they are faster with reading ahead: one thread less computes meanwhile. */
export class Trial {
  on = true;
  /** With this piece a pass begins. */
  #mark: number | undefined;
  /** Since a trial's first, at which of them the next trial begins, and of the next one that is lost. */
  #pass = -WARMING - 1;
  #next = 0;
  #soon = SOONEST;
  #begun = 0;
  /** Milliseconds of the two shortest passes without and with: of passes that vary much one may be short. */
  #best = [UNTRIED, UNTRIED];

  /** Tells of a piece that is asked for. */
  pass(offset: number): void {
    if (offset !== (this.#mark ??= offset)) return;
    const now = performance.now();
    const which = Number(this.on);
    if (this.#begun > 0) this.#best[which] = shortest([...this.#best[which]!, now - this.#begun]);
    this.#begun = now;
    if (++this.#pass === this.#next) {
      this.#pass = 0;
      this.#best = [UNTRIED, UNTRIED];
    }
    if (this.#pass < TRIED) this.on = this.#pass < 0 || this.#pass % 4 < 2;
    else if (this.#pass === TRIED) this.#end();
  }

  #end(): void {
    const [without, ahead] = this.#best.map(sum);
    this.on = ahead! <= WORTH * without!;
    this.#next = this.on ? LATEST : this.#soon;
    this.#soon = this.on ? SOONEST : Math.min(2 * this.#soon, LATEST);
  }
}
