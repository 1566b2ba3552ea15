// The draft of an open model: a second model in the same memory, which guesses the first one's tokens.
import type { LoadRequest } from '../contract.js';
import type { DraftStats } from '../draft-types.js';
import { QSFError, asError } from '../errors.js';
import { hubAddress, hubName } from '../page/hub.js';
import type { Engine } from '../wasm/engine.js';
import type { MakerStarter } from '../wasm/maker.js';
import { Loader } from './loader.js';
import type { Listeners } from './loader.js';
import { isRemote } from './open-source.js';

export class Draft {
  readonly #model: Engine;
  readonly #loader: Loader;
  readonly #tell: Listeners;

  /** Opens the draft's source. Errors are the draft's. */
  static async create(request: LoadRequest, model: Engine, tell: Listeners, start: MakerStarter): Promise<Draft> {
    const engine = model.makeDraft();
    const opener = { open: engine.openDraft.bind(engine), isDraft: true };
    const own: Listeners = {
      progress: (progress) => tell.progress({ ...progress, of: 'draft' }),
      warning: (warning) => tell.warning(`The draft model: ${warning}`),
    };
    return ofDraft(async () => {
      const loader = await Loader.create(draftRequest(request), engine, own, start, () => opener);
      return new Draft(model, loader, tell);
    });
  }

  constructor(model: Engine, loader: Loader, tell: Listeners) {
    this.#model = model;
    this.#loader = loader;
    this.#tell = tell;
  }

  /** Opens the draft, before the model opens. */
  load(): Promise<void> {
    return ofDraft(() => this.#loader.load());
  }

  /** Lets the draft guess for the model, which has opened. Throws unsupported or bad_argument if it cannot. */
  check(): void {
    this.#model.checkDraft();
  }

  /** Warns of what will not be fast. */
  warn(): void {
    for (const note of this.#model.draftNotes()) this.#tell.warning(note);
  }

  /**
   * Lets the draft guess for every sequence that wants guesses, and calls `turn` between its steps. Undefined if no
   * sequence wants any.
   */
  guess(turn: () => Promise<void>): Promise<void> | undefined {
    try {
      return this.#model.beginGuess() ? ofDraft(() => this.#finish(turn)) : undefined;
    } catch (error) {
      throw named(error);
    }
  }

  /** Ends guesses for a sequence whose generation has ended. */
  stop(sequence: number): void {
    const { engine, runner } = this.#loader;
    engine.session.stop(sequence);
    runner.wake();
  }

  stats(): { figures: DraftStats; maker: number } {
    const { maker, ...figures } = this.#loader.stats();
    return { maker, figures: { budget: this.#loader.engine.session.stats().budget, ...figures } };
  }

  /** Whether this browser keeps the draft, or has begun to. */
  get isKept(): boolean {
    return this.#loader.isKept;
  }

  close(): Promise<void> {
    return this.#loader.source.close();
  }

  async #finish(turn: () => Promise<void>): Promise<void> {
    do {
      do {
        await this.#loader.runner.run();
        await turn();
      } while (!this.#model.session.takeGuess());
    } while (this.#model.beginGuess());
  }
}

/** Returns the request of a model's draft. Headers and credentials are not for another server than the model's. */
function draftRequest({ draft, draftType: quantType, sha256: _, ...request }: LoadRequest): LoadRequest {
  const source = draft!;
  const { headers, credentials, ...rest } = request.network;
  const isOther = isRemote(source) && isRemote(request.source) && originOf(source) !== originOf(request.source);
  const network = isOther ? rest : { ...rest, ...(headers && { headers }), ...(credentials && { credentials }) };
  return { ...request, source, quantType, network, kv: undefined };
}

function originOf(address: string): string {
  const repository = hubName(address);
  return new URL(repository ? hubAddress(repository) : address).origin;
}

async function ofDraft<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw named(error);
  }
}

/** Returns an error as the draft's. */
function named(thrown: unknown): QSFError {
  const { code, message, url, status, cause } = asError(thrown);
  return new QSFError(code, `the draft model: ${message}`, { url, status, cause });
}
