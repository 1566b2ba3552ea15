// An open model in the worker: engine, source, and the calls that compute.
import type { Batch, Call, EmbedRequest, GenerateRequest, LoadRequest, SaveRequest } from '../contract.js';
import { checkWebAssembly, detectSharing, detectThreads } from './detect.js';
import { Draft } from './draft.js';
import { Embedding } from './embedding.js';
import { Engine } from '../wasm/engine.js';
import type { ModuleStarter } from '../wasm/engine.js';
import type { MakerStarter } from '../wasm/maker.js';
import { QSFError } from '../errors.js';
import { Generation } from './generation.js';
import { Loader } from './loader.js';
import type { Listeners, Opener } from './loader.js';
import { Passes } from './passes.js';
import { chooseVariant } from './variant.js';
import { storeSaved, storedFile } from '../sources/saved-files.js';
import type { GenerationResult, Restored, Stats, Trace } from '../types.js';
import { restoreSequence, savedSequence } from './saved.js';
import { Sequences } from './sequences.js';
import type { Claim, Scarce, Turn } from './sequences.js';

/** The modules of the worker. */
export interface Starters {
  engine: ModuleStarter;
  maker: MakerStarter;
}

export class Model {
  readonly engine: Engine;
  readonly #loader: Loader;
  readonly #draft: Draft | undefined;
  readonly #passes: Passes;
  readonly #sequences: Sequences;
  /** By the ids of their calls: generations whose results the page has not taken, and embeddings under way. */
  readonly #works = new Map<string, Generation | Embedding>();
  /** The generation that began last, and the sequence of the last turn. */
  #generation: Generation | undefined;
  #sequence = 0;

  static async create(request: LoadRequest, tell: Listeners, start: Starters): Promise<Model> {
    checkWebAssembly();
    const threads = detectThreads(request.threads);
    const starting = startEngine(request, threads, start.engine);
    const draft =
      request.draft === undefined ? undefined : await Draft.create(request, await starting, tell, start.maker);
    try {
      const opener = (engine: Engine) => openerOf(engine, draft);
      return new Model(request, await Loader.create(request, starting, tell, start.maker, opener), draft);
    } catch (error) {
      await draft?.close();
      throw error;
    }
  }

  constructor(request: LoadRequest, loader: Loader, draft?: Draft) {
    const { engine, runner } = loader;
    this.engine = engine;
    this.#loader = loader;
    this.#draft = runner.draft = draft;
    const passes = (this.#passes = new Passes(runner));
    const hurry = (waits: boolean) => (passes.isHurried = waits);
    const numberOf = (part: Scarce) => (part === 'file' ? 1 : engine.session.guides(part === 'grammar'));
    this.#sequences = new Sequences(request.open.sequences, hurry, numberOf);
  }

  /**
   * Opens the model, after its draft, and fetches the weights. In the background, if requested, fetching continues after
   * the promise resolves.
   */
  async load(): Promise<void> {
    if (this.#draft) await this.#draft.load();
    await this.#loader.load();
    this.#draft?.warn();
  }

  /** Whether this browser keeps the model or its draft, or has begun to. */
  get isKept(): boolean {
    return this.#loader.isKept || this.#draft?.isKept === true;
  }

  async start(call: Call, request: GenerateRequest): Promise<void> {
    const turn = await this.#take({ ...call, kind: 'generation', request });
    const generation = begun(turn, () => new Generation(this.engine, this.#passes, turn, request));
    this.#works.set(call.id, generation);
    this.#generation = generation;
  }

  async next(id: string): Promise<Batch> {
    const generation = this.#works.get(id);
    if (!(generation instanceof Generation)) throw new QSFError('bad_state', 'there is no such generation');
    try {
      const batch = await generation.next();
      if (batch.result) this.#works.delete(id);
      return batch;
    } catch (error) {
      this.#works.delete(id);
      throw error;
    }
  }

  async embed(call: Call, request: EmbedRequest): Promise<Float32Array[]> {
    const turn = await this.#take({ ...call, kind: 'embedding' });
    const embedding = begun(turn, () => new Embedding(this.engine, this.#passes, turn, request));
    this.#works.set(call.id, embedding);
    try {
      return await embedding.finished;
    } finally {
      this.#works.delete(call.id);
    }
  }

  async rewind(call: Call, position: number): Promise<void> {
    const turn = await this.#take({ ...call, kind: 'rewind' });
    try {
      this.engine.rewind(position, turn.sequence);
    } finally {
      turn.end();
    }
  }

  async save(call: Call, { messages, name }: SaveRequest): Promise<Blob> {
    const turn = await this.#take({ ...call, kind: 'save' });
    try {
      const file = this.#saved(turn.sequence, messages);
      if (name !== undefined) await storeSaved(name, file);
      return file;
    } finally {
      turn.end();
    }
  }

  /** Returns a sequence as a file. The error of a model whose checksums are not known yet has the remedy. */
  #saved(sequence: number, messages: string): Blob {
    try {
      return savedSequence(this.engine, sequence, messages);
    } catch (error) {
      if (!this.#loader.source.makes || !(error instanceof QSFError) || error.code !== 'bad_state') throw error;
      const remedy = this.#loader.isKept
        ? 'the kept file has them: close the model, load it again, and save then'
        : 'the .qsf file that qsf-convert makes of the model has them';
      throw new QSFError('bad_state', `${error.message}; ${remedy}`);
    }
  }

  async restore(call: Call, from: Blob | string): Promise<Restored> {
    const turn = await this.#take({ ...call, kind: 'restore' });
    try {
      const file = typeof from === 'string' ? await storedFile(from) : from;
      await this.#passes.passed();
      return await restoreSequence(this.engine, turn.sequence, file);
    } finally {
      turn.end();
    }
  }

  /**
   * Ends a call, which may wait for its turn, and forgets it. Returns the result of a generation, whose text ends with
   * its first `shown` pieces.
   */
  stop(id: string, shown?: number): GenerationResult | undefined {
    this.#sequences.withdraw(id);
    const work = this.#works.get(id);
    this.#works.delete(id);
    if (work instanceof Generation) return work.stop(shown);
    work?.stop();
    return undefined;
  }

  stats(): Stats {
    const { engine } = this;
    const { budget, isa } = engine.session.stats();
    const { maker, ...figures } = this.#loader.stats();
    const draft = this.#draft?.stats();
    const map = engine.memoryMap().filter(({ region }) => region !== 'host');
    return {
      ...figures,
      memory: { budget, wasm: engine.memoryBytes, maker: maker + (draft?.maker ?? 0), map },
      engine: { variant: engine.variant, isa, threads: engine.threads, kernels: engine.session.kernelCounts() },
      ...(draft && { draft: draft.figures }),
      ...(this.#generation && { generation: this.#generation.stats() }),
      position: engine.session.sequenceStats(this.#sequence).position,
    };
  }

  trace(): Trace {
    return this.#loader.runner.tracer.trace(this.engine.session.segments());
  }

  async close(): Promise<void> {
    this.#sequences.withdrawAll();
    for (const work of this.#works.values()) if (work instanceof Embedding || work.stats().running) work.stop();
    this.engine.session.close();
    await Promise.all([this.#loader.source.close(), this.#draft?.close()]);
  }

  async #take(claim: Claim): Promise<Turn> {
    const turn = await this.#sequences.take(claim);
    this.#sequence = turn.sequence;
    return turn;
  }
}

/** Returns the work that a turn begins. The turn ends if it cannot begin. */
function begun<T>(turn: Turn, begin: () => T): T {
  try {
    return begin();
  } catch (error) {
    turn.end();
    throw error;
  }
}

/** Returns the opening of a model, whose draft has opened. */
async function startEngine(request: LoadRequest, threads: number, start: ModuleStarter): Promise<Engine> {
  const variant = request.variant ?? (await chooseVariant());
  const tuned = request.threads === undefined;
  const { memory: budget, wasm } = request;
  const shared = threads > 1 || detectSharing(wasm);
  return Engine.create({ variant, threads, tuned, shared, budget, wasm }, start);
}

export const openerOf = (engine: Engine, draft?: Draft): Opener => ({
  open: (options) => {
    engine.open(options);
    return true;
  },
  opened: () => draft?.check(),
});
