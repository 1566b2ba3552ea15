// Reading ahead of need. Each pass reads the same pieces in the same order, so the piece that followed another the last
// time is fetched before it is requested, and neighbours in the file are fetched as one run.
import { MiB } from '../constants.js';
import { Blocks, LARGEST } from './blocks.js';

/** Bytes of a run, unless the supply states others or a single piece has more. */
const RUN = MiB;
/** Runs in memory: one in use, two on their way. */
const RUNS = 3;
/** The number of expected pieces that make up for one unexpected piece, and the largest number that counts. */
const SURPRISE = 4;
const MOST_TRUST = 8;
/** Consecutive pieces outside all runs after which the runs are given up. */
const LOST = 2;

/** The source of runs. */
export interface Supply {
  /** The most unwanted bytes between two pieces of one run. */
  readonly gap: number;
  /** Bytes of a run. */
  readonly run?: number;
  /**
   * Fills `into`, or other memory of its size, with the bytes at `offset`. Undefined means that it gives up, at once or
   * when the promise settles; fewer bytes mean the same.
   */
  fetch(offset: number, into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined> | undefined;
}

interface Piece {
  offset: number;
  size: number;
  /** The piece that followed this one the last time, and the piece after that. */
  next?: Piece;
  third?: Piece;
}

interface Run {
  offset: number;
  end: number;
  last: Piece;
  bytes?: Uint8Array<ArrayBuffer> | undefined;
  /** Settles when the bytes are here, or will not come. */
  arriving: Promise<unknown>;
}

export class ReadAhead {
  readonly #supply: Supply;
  readonly #trial: Trial | undefined;
  readonly #run: number;
  readonly #blocks: Blocks;
  readonly #pieces = new Map<number, Piece>();
  /** In the order of expected use. */
  #runs: Run[] = [];
  #before: Piece | undefined;
  #last: Piece | undefined;
  /** Above 0 while pieces are requested in the known order. */
  #trust = 0;
  #lost = 0;

  /** With a trial, it reads ahead only while that makes passes faster. */
  constructor(supply: Supply, trial?: Trial) {
    this.#supply = supply;
    this.#run = supply.run ?? RUN;
    this.#blocks = new Blocks(this.#run);
    this.#trial = trial;
  }

  /**
   * Fills `into` from a run that covers it, at once or when the run has arrived. False if no run does, or if the supply
   * gave it up. Rejects with the supply's error.
   */
  read(offset: number, into: Uint8Array): boolean | Promise<boolean> {
    const piece = this.#learn(offset, into.length);
    if (this.#trust === MOST_TRUST) this.#trial?.pass(offset);
    const at = this.#runs.findIndex((run) => run.offset <= offset && offset + into.length <= run.end);
    const run = this.#runs[at];
    // Copies before the block can go to another run.
    const got = run && take(run, offset, into);
    this.#free(at);
    this.#lost = run ? 0 : this.#lost + 1;
    const isOn = this.#trust > 0 && this.#trial?.on !== false;
    if (!isOn || this.#lost > LOST) this.#free();
    if (isOn) this.#fill(piece);
    return got ?? false;
  }

  /** Gives up all runs and the known order, because both may belong to an old version of the file. */
  forget(): void {
    this.#free();
    this.#pieces.clear();
    this.#before = this.#last = undefined;
    this.#trust = 0;
  }

  /**
   * Notes the order of pieces. The order leaves out a look-up, which is another piece each time, and a piece that is
   * requested again because a look-up evicted it.
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

  /** Fetches runs of the pieces that are expected after the last run. */
  #fill(piece: Piece): void {
    let tip = this.#runs.at(-1)?.last ?? piece;
    while (this.#runs.length < RUNS && tip.next) {
      const { offset, size } = (tip = tip.next);
      if (size > LARGEST || this.#runs.some((run) => run.offset <= offset && offset < run.end)) return;
      let end = offset + size;
      for (let next = tip.next; next && next.offset >= end && next.offset <= end + this.#supply.gap; next = tip.next) {
        if (next.offset + next.size - offset > this.#run) break;
        tip = next;
        end = next.offset + next.size;
      }
      const into = this.#blocks.take(end - offset);
      const fetched = this.#supply.fetch(offset, into);
      if (!fetched) return this.#blocks.give(into);
      const run: Run = { offset, end, last: tip, arriving: fetched };
      this.#runs.push(run);
      const fail = () => (this.#runs = this.#runs.filter((other) => other !== run));
      run.arriving = fetched.then((bytes) => (bytes?.length === end - offset ? (run.bytes = bytes) : fail()));
      // The caller that waits for the run gets the error.
      run.arriving.catch(fail);
    }
  }

  /** Drops the first `count` runs. Their blocks are free once the callers that wait for bytes have them. */
  #free(count = RUNS): void {
    for (const run of this.#runs.splice(0, count)) {
      const give = () => run.bytes && this.#blocks.give(run.bytes);
      run.arriving.then(give, give);
    }
  }
}

/** Fills `into` from a run, at once or when it has arrived. False if it brings no bytes. */
function take(run: Run, offset: number, into: Uint8Array): boolean | Promise<boolean> {
  const copy = () => {
    if (run.bytes) into.set(run.bytes.subarray(offset - run.offset, offset - run.offset + into.length));
    return !!run.bytes;
  };
  return run.bytes ? copy() : run.arriving.then(copy);
}

/** Passes before the first trial, because code that has just started is slow. */
const WARMING = 16;
/** Passes of a trial, half of them with reading ahead, two at a time. */
const TRIED = 8;
/**
 * Passes until the next trial. The interval is short after a trial that reading ahead lost, because another program may
 * have slowed it down.
 */
const [SOONEST, LATEST] = [16, 128];

/**
 * The largest ratio of the time with reading ahead to the time without at which it stays on, because the second worker
 * takes a core.
 */
const WORTH = 0.9;
const UNTRIED = [Infinity, Infinity];
const shortest = (times: number[]) => times.sort((a, b) => a - b).slice(0, 2);
const sum = (times: number[]) => times.reduce((a, b) => a + b);

/** Measures whether passes are faster with reading ahead, because one thread less computes meanwhile. */
export class Trial {
  on = true;
  /** The piece with which a pass begins. */
  #mark: number | undefined;
  /**
   * The passes since the beginning of a trial, the number at which the next trial begins, and that number after the
   * next lost trial.
   */
  #pass = -WARMING - 1;
  #next = 0;
  #soon = SOONEST;
  #begun = 0;
  /** Milliseconds of the two shortest passes without and with reading ahead. A single one may be short by chance. */
  #best = [UNTRIED, UNTRIED];

  /** Notes a piece that is requested. */
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
