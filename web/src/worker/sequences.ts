// The sequences of a model, and the calls that take them: first come, first served.
import type { Call, GenerateRequest } from '../contract.js';
import { QSFError } from '../errors.js';
import { isChat } from '../wasm/engine.js';

/** A call that takes a sequence. */
export interface Claim extends Call {
  kind: 'generation' | 'embedding' | 'rewind' | 'save' | 'restore';
  /** The request of a generation. */
  request?: GenerateRequest;
}

/** A text or tokens that can be compared. */
type Text = string | Uint32Array;

interface Sequence {
  /** The claim of the call that has it. */
  holder: Claim | undefined;
  /** The caller that changed it last. */
  owner: string | undefined;
  /** Calls that have changed it. */
  changes: number;
  /** The number of its last turn, of all. */
  turn: number;
  /** The prompt with which it began anew. */
  prompt: Text | undefined;
}

/** The parts that the engine has fewer of than sequences: guides of held texts, guides of thoughts, restored files. */
export type Scarce = 'grammar' | 'thoughts' | 'file';

interface Waiting {
  claim: Claim;
  enter(turn: Turn): void;
  refuse(error: unknown): void;
}

/** A call's hold of a sequence. */
export class Turn {
  readonly sequence: number;
  readonly #of: Sequence;
  readonly #change: number;
  readonly #end: () => void;

  constructor(sequence: number, of: Sequence, end: () => void) {
    this.sequence = sequence;
    this.#of = of;
    this.#change = of.changes;
    this.#end = end;
  }

  /** Whether no later call has changed the sequence. */
  get isLast(): boolean {
    return this.#of.changes === this.#change;
  }

  /** Lets the next call have the sequence. */
  end(): void {
    this.#end();
  }
}

export class Sequences {
  readonly #all: Sequence[];
  /** The sequence of each caller's last generation or restored file. */
  readonly #latest = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  readonly #onWaiting: (waits: boolean) => void;
  readonly #numberOf: (part: Scarce) => number;
  #turns = 0;

  /** `onWaiting` gets whether a call waits. `numberOf` returns how many calls may have a part at once. */
  constructor(count: number, onWaiting: (waits: boolean) => void, numberOf: (part: Scarce) => number) {
    this.#all = Array.from({ length: count }, () => ({
      ...{ holder: undefined, owner: undefined, changes: 0, turn: 0, prompt: undefined },
    }));
    this.#onWaiting = onWaiting;
    this.#numberOf = numberOf;
  }

  /**
   * Resolves when it is the call's turn. Rejects with bad_argument for a sequence that does not exist, with bad_state if
   * there is nothing to continue, and with cancelled after withdraw().
   */
  take(claim: Claim): Promise<Turn> {
    return new Promise((enter, refuse) => {
      this.#waiting.push({ claim, enter, refuse });
      this.#admit();
    });
  }

  /** Takes a call that waits out of the queue. */
  withdraw(id: string): void {
    const found = this.#waiting.find(({ claim }) => claim.id === id);
    if (!found) return;
    this.#remove(found);
    found.refuse(new QSFError('cancelled', 'the call was stopped before its turn'));
    this.#admit();
  }

  /** Takes all calls out of the queue. */
  withdrawAll(): void {
    for (const { claim } of [...this.#waiting]) this.withdraw(claim.id);
  }

  /** Lets every call in that finds its sequence free, in their order. */
  #admit(): void {
    /** Callers with an earlier call that waits, and will be the one to continue. */
    const leading = new Set<string>();
    for (const waiting of [...this.#waiting]) {
      const { claim, enter, refuse } = waiting;
      let sequence: number | undefined;
      try {
        sequence = this.#find(claim, leading.has(claim.caller));
      } catch (error) {
        this.#remove(waiting);
        refuse(error);
        continue;
      }
      if (sequence === undefined) {
        if (leads(claim)) leading.add(claim.caller);
        continue;
      }
      this.#remove(waiting);
      enter(this.#begin(claim, sequence));
    }
    this.#onWaiting(this.#waiting.length > 0);
  }

  #remove(waiting: Waiting): void {
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
  }

  #begin(claim: Claim, i: number): Turn {
    const sequence = this.#all[i]!;
    sequence.holder = claim;
    sequence.turn = ++this.#turns;
    if (claim.kind !== 'save') {
      sequence.changes++;
      sequence.owner = claim.caller;
      if (isAnew(claim)) sequence.prompt = promptOf(claim);
    }
    if (leads(claim)) this.#latest.set(claim.caller, i);
    return new Turn(i, sequence, () => {
      if (sequence.holder !== claim) return;
      sequence.holder = undefined;
      this.#admit();
    });
  }

  /** Returns the sequence that a call can have now. Throws bad_argument and bad_state. */
  #find(claim: Claim, isAfterOther: boolean): number | undefined {
    const { sequence: chosen } = claim;
    if (chosen !== undefined && !this.#all[chosen])
      throw new QSFError(
        'bad_argument',
        `sequence is ${chosen}; the model was loaded with sequences: ${this.#all.length}, so that the last one is ${this.#all.length - 1}`,
      );
    const part = scarceOf(claim);
    const users = part ? this.#all.filter(({ holder }) => holder && scarceOf(holder) === part).length : 0;
    if (part && users > 0 && users >= this.#numberOf(part)) return undefined;
    if (chosen === undefined && isAnew(claim)) return this.#free(claim);
    if (chosen === undefined && isAfterOther) return undefined;
    // Later generations of the caller do not change the sequence that this call continues.
    const sequence = (claim.sequence ??= this.#last(claim.caller));
    const found = this.#all[sequence];
    if (!found || found.holder) return undefined;
    if (!isAnew(claim) && found.owner !== undefined && found.owner !== claim.caller) throw nothing();
    return sequence;
  }

  /** Returns the sequence of the caller's last generation; without one, a sequence that is empty or the caller's. */
  #last(caller: string): number {
    const latest = this.#latest.get(caller);
    if (latest !== undefined) return latest;
    const own = this.#all.findIndex(({ owner }) => owner === undefined || owner === caller);
    if (own < 0) throw nothing();
    return own;
  }

  /**
   * Returns a sequence that no call has: the one whose prompt the call's prompt continues, or else the one that had its
   * last turn longest ago.
   */
  #free(claim: Claim): number | undefined {
    const prompt = this.#all.length > 1 ? promptOf(claim) : undefined;
    const common = ({ prompt: before }: Sequence) => (prompt && before && begins(prompt, before) ? before.length : 0);
    let best: { i: number; common: number; turn: number } | undefined;
    for (const [i, sequence] of this.#all.entries()) {
      if (sequence.holder) continue;
      const found = { i, common: common(sequence), turn: sequence.turn };
      if (!best || found.common > best.common || (found.common === best.common && found.turn < best.turn)) best = found;
    }
    return best?.i;
  }
}

const nothing = () => new QSFError('bad_state', 'another tab used the sequence, so there is nothing to continue');

/** Whether the call replaces the content of a sequence, so that any sequence will do. */
const isAnew = ({ kind, request }: Claim) =>
  kind === 'embedding' || kind === 'restore' || (request !== undefined && (request.anew || isChat(request.prompt)));

/** Whether later calls of the caller continue its sequence. */
const leads = ({ kind }: Claim) => kind === 'generation' || kind === 'restore';

function scarceOf({ kind, request }: Claim): Scarce | undefined {
  if (kind === 'restore') return 'file';
  if (request?.grammar !== undefined || request?.hold?.calls !== undefined) return 'grammar';
  return request?.hold === undefined ? undefined : 'thoughts';
}

/** Returns the text that a generation begins anew with. That of a conversation is of its messages. */
function promptOf({ request }: Claim): Text | undefined {
  const prompt = request?.prompt;
  if (prompt === undefined || !isChat(prompt)) return prompt;
  const { messages } = JSON.parse(prompt.values) as { messages?: unknown };
  return JSON.stringify(messages ?? '').slice(0, -1);
}

function begins(text: Text, beginning: Text): boolean {
  if (typeof text !== typeof beginning || text.length < beginning.length) return false;
  if (typeof text === 'string') return text.startsWith(beginning as string);
  return (beginning as Uint32Array).every((id, i) => text[i] === id);
}
