// An open model in the worker: engine, source, and the calls that compute.
import type { Region } from '../boundary.gen.js';
import type { Batch, Call, EmbedRequest, GenerateRequest, LoadRequest, SaveRequest } from '../contract.js';
import { checkWebAssembly, detectSharing, detectThreads } from './detect.js';
import { Embedding } from './embedding.js';
import { fileDigest } from './file-digest.js';
import { Engine } from '../wasm/engine.js';
import type { ModuleStarter } from '../wasm/engine.js';
import type { MakerStarter } from '../wasm/maker.js';
import { QSFError } from '../errors.js';
import type { ErrorName } from '../errors.js';
import { Generation } from './generation.js';
import { isRemote, openSource } from './open-source.js';
import { Passes } from './passes.js';
import { ProgressReport } from './progress.js';
import { chosenRequest } from './repository.js';
import { chooseVariant } from './variant.js';
import { OF_FILE, Runner } from './runner.js';
import { hideSecrets } from '../secrets.js';
import type { Warn } from '../sources/http-source.js';
import type { ByteSource } from '../sources/source.js';
import { storeSaved, storedFile } from '../sources/saved-files.js';
import type { Expected, GenerationResult, Progress, Restored, Stats, Trace } from '../types.js';
import { restoreSequence, savedSequence } from './saved.js';
import { Sequences } from './sequences.js';
import type { Claim, Turn } from './sequences.js';

/** Errors that a damaged or outdated cache can cause; the file is then read anew, once. */
const STALE: readonly ErrorName[] = ['file_changed', ...OF_FILE];
/** Bytes of a file's header, layout.h's kHeaderSize. */
const HEADER = 128;
/** The beginning of a web page. It is for pages shorter than a header; the engine recognizes longer ones. */
const PAGE = /^\s*<(!doctype|html|head|body|title|\?xml|!--)/i;

/** The figure of `stats().plan` that a region counts in; the host's is outside the arena. */
const FIGURES: Record<Exclude<Region, 'host'>, ArenaFigure> = {
  session: 'fixedBytes',
  tables: 'fixedBytes',
  tokenizer: 'fixedBytes',
  pinned: 'pinnedBytes',
  ring: 'ringBytes',
  kv_cache: 'kvBytes',
  activations: 'scratchBytes',
  logits: 'scratchBytes',
  embedding_rows: 'scratchBytes',
  texts: 'fixedBytes',
  free: 'freeBytes',
};
type ArenaFigure = 'pinnedBytes' | 'ringBytes' | 'kvBytes' | 'scratchBytes' | 'fixedBytes' | 'freeBytes';

/** The page's listeners. */
export interface Listeners {
  progress(progress: Progress): void;
  warning(warning: string): void;
}

/** The modules of the worker. */
export interface Starters {
  engine: ModuleStarter;
  maker: MakerStarter;
}

export class Model {
  readonly engine: Engine;
  readonly #source: ByteSource;
  readonly #runner: Runner;
  readonly #request: LoadRequest;
  readonly #tell: Listeners;
  readonly #warn: Warn;
  readonly #progress: ProgressReport;
  readonly #passes: Passes;
  readonly #sequences: Sequences;
  /** By the ids of their calls: generations whose results the page has not taken, and embeddings under way. */
  readonly #works = new Map<string, Generation | Embedding>();
  /** The generation that began last, and the sequence of the last turn. */
  #generation: Generation | undefined;
  #sequence = 0;
  #modelHash = '';
  /** Whether the page knows the plan. */
  #isPlanned = false;
  /** Whether the session was opened for a source that others watch. */
  #watched = false;

  static async create(request: LoadRequest, tell: Listeners, start: Starters): Promise<Model> {
    checkWebAssembly();
    const variant = request.variant ?? (await chooseVariant());
    const threads = detectThreads(request.threads);
    const tuned = request.threads === undefined;
    const { memory: budget, wasm } = request;
    const shared = threads > 1 || detectSharing(wasm);
    const engine = await Engine.create({ variant, threads, tuned, shared, budget, wasm }, start.engine);
    const progress = new ProgressReport((now) => tell.progress(now));
    const warn = warner(tell, progress);
    const chosen = await chosenRequest(request, warn);
    const source = await openSource(chosen, start.maker, warn);
    return new Model(chosen, engine, source, tell, progress);
  }

  constructor(
    request: LoadRequest,
    engine: Engine,
    source: ByteSource,
    tell: Listeners,
    progress = new ProgressReport((now) => tell.progress(now)),
  ) {
    this.#request = request;
    this.engine = engine;
    this.#source = source;
    this.#runner = new Runner(engine, source, typeof request.source === 'string' ? request.source : undefined);
    const passes = (this.#passes = new Passes(this.#runner));
    this.#sequences = new Sequences(request.open.sequences, (waits) => (passes.isHurried = waits));
    this.#tell = tell;
    this.#warn = warner(tell, progress);
    this.#progress = progress;
    progress.watch(source);
  }

  /**
   * Opens the model and fetches its weights. In the background, if requested, fetching continues after the promise
   * resolves.
   */
  async load(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      if (!(error instanceof QSFError) || !STALE.includes(error.code) || !this.#mayBeStale(error)) throw error;
      await this.#runner.settled();
      await this.#source.restart();
      this.#isPlanned = false;
      await this.#open();
    }
    this.#progress.begin('ready');
    const { warning, tokenBytes } = this.engine.session.stats();
    if (!this.#request.background && tokenBytes === 0) this.#source.rest?.();
    if (warning !== '') this.#tell.warning(warning);
    this.#warnOfCache();
    this.#warnOfExperts();
  }

  /** Whether this browser keeps the model, or has begun to. */
  get isKept(): boolean {
    return this.#source.stats().cacheState !== 'off';
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
      const file = savedSequence(this.engine, turn.sequence, messages);
      if (name !== undefined) await storeSaved(name, file);
      return file;
    } finally {
      turn.end();
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
    const s = engine.session.stats();
    const source = this.#source.stats();
    const map = engine.memoryMap().filter(({ region }) => region !== 'host');
    const figures: Record<ArenaFigure, number> = {
      pinnedBytes: 0,
      ringBytes: 0,
      kvBytes: 0,
      scratchBytes: 0,
      fixedBytes: 0,
      freeBytes: 0,
    };
    for (const { region, bytes } of map) if (region !== 'host') figures[FIGURES[region]] += bytes;
    const segments = engine.session.segments();
    return {
      model: {
        bytes: s.modelBytes,
        weightBytes: s.weightBytes,
        hash: this.#modelHash,
        ...(source.made && { madeFrom: source.made.kind }),
        layers: s.layers,
        vocabSize: s.vocabSize,
        dim: s.dim,
      },
      memory: { budget: s.budget, wasm: engine.memoryBytes, maker: source.made?.bytes ?? 0, map },
      plan: {
        ...figures,
        segments: s.segments,
        pinnedSegments: s.pinnedSegments,
        ringSlots: s.ringSlots,
        residency: segments.map(({ rawSize, pinned }) => ({ bytes: rawSize, pinned })),
        kv: s.kv,
        kvReason: s.kvReason,
        kvWindow: s.kvWindow,
        kvSinks: s.kvSinks,
        kvChosen: s.kvChosen,
        maxSeqLen: s.maxSeqLen,
        modelSeqLen: s.modelSeqLen,
        contextReason: s.contextReason,
        moreContext: s.moreContext,
        chunk: s.chunk,
        sequences: s.sequences,
      },
      engine: { variant: engine.variant, isa: s.isa, threads: engine.threads, kernels: engine.session.kernelCounts() },
      io: {
        network: source.network,
        cache: source.cache,
        blob: source.blob,
        engine: this.#runner.bytes,
        requests: source.requests,
        cacheState: source.cacheState,
        cachedBytes: source.cachedBytes,
        networkPerToken: this.#networkPerToken(),
      },
      ...(this.#generation && { generation: this.#generation.stats() }),
      position: engine.session.sequenceStats(this.#sequence).position,
    };
  }

  trace(): Trace {
    return this.#runner.tracer.trace(this.engine.session.segments());
  }

  async close(): Promise<void> {
    this.#sequences.withdrawAll();
    for (const work of this.#works.values()) if (work instanceof Embedding || work.stats().running) work.stop();
    this.engine.session.close();
    await this.#source.close();
  }

  async #take(claim: Claim): Promise<Turn> {
    const turn = await this.#sequences.take(claim);
    this.#sequence = turn.sequence;
    return turn;
  }

  /**
   * Opens the session. Before the first prompt either the whole model is kept, or the session is one whose reads do not
   * depend on the text.
   */
  async #open(): Promise<void> {
    const source = this.#source;
    const { background, lazy, sha256 } = this.#request;
    if (sha256 !== undefined) await this.#checkDigest(sha256);
    await this.#plan(source.isWatched && (background || lazy || !source.keeps));
    if (lazy) return;
    const kept = source.keep(this.engine.session.segments());
    if (background) {
      // A failed fetch fails again when the engine needs the bytes, and is reported then.
      kept.catch(() => {});
    } else {
      await kept;
      if (source.isWatched && !this.#watched) {
        await this.#runner.settled();
        await this.#plan(true);
      }
      this.engine.preload();
      await this.#runner.run();
    }
    if (!this.#watched) source.hide?.(this.engine.session.segments().filter(({ byText }) => byText));
  }

  /** Reads the whole file. Rejects with bad_checksum if it is not the requested one. */
  async #checkDigest(sha256: string): Promise<void> {
    const { source } = this.#request;
    const found = await fileDigest(this.#source, this.engine);
    if (found === sha256) return this.#source.accepted();
    const error = new QSFError('bad_checksum', `the file has the SHA-256 ${found}, not ${sha256}: it is another file`);
    throw typeof source === 'string' ? error.at(source) : error;
  }

  async #plan(watched: boolean): Promise<void> {
    const { open, kv } = this.#request;
    if (!this.#isPlanned) this.#progress.begin('open');
    this.#watched = watched;
    if (this.#source.size < HEADER) throw await this.#tooShort();
    const { size: fileSize, makes: vouched = false } = this.#source;
    this.engine.open({ ...open, watched, fileSize, vouched, kv });
    await this.#runner.run();
    this.#source.accepted();
    // The tables of a made file do not have all checksums, so that their hash says nothing about the weights.
    this.#modelHash = this.#source.makes ? '' : this.engine.session.modelHash();
    if (!this.#isPlanned) this.#progress.begin('plan', this.#expected());
    this.#isPlanned = true;
    this.#progress.begin('download');
  }

  /** Returns the error of a file that is shorter than a header, whose bytes the engine does not request. */
  async #tooShort(): Promise<QSFError> {
    const { size } = this.#source;
    const into = new Uint8Array(size);
    await this.#source.read({ offset: 0, into, crc: undefined });
    const error = PAGE.test(new TextDecoder().decode(into))
      ? new QSFError('bad_magic', "not a QSF file; it is a web page: is the address the file's own?")
      : new QSFError('truncated', `the file has ${size} bytes, a header alone has ${HEADER}`);
    const { source } = this.#request;
    return typeof source === 'string' ? error.at(source) : error;
  }

  /** Returns the bytes that each token reads from the network. */
  #networkPerToken(): number {
    if (!isRemote(this.#request.source) || this.#source.stats().cacheState === 'complete') return 0;
    return this.engine.session.stats().tokenBytes;
  }

  #warnOfCache(): void {
    const { source, cache, cacheLimit } = this.#request;
    if (!isRemote(source) || !cache || this.isKept) return;
    const perToken = this.#networkPerToken();
    const streamed = perToken === 0 ? '' : `, and ${perToken} bytes of it for every token`;
    const why =
      cacheLimit !== undefined && this.#source.size > cacheLimit
        ? `${source} is larger than cacheLimit and not kept`
        : `The browser refused to keep ${source}`;
    this.#warn(`${why}: it is fetched anew each time that it is opened${streamed}.`);
  }

  #warnOfExperts(): void {
    if (!this.#watched || !this.engine.session.segments().some(({ byText }) => byText)) return;
    this.#warn(
      `Which experts are read depends on the text, and the server of ${String(this.#request.source)} sees them: it may guess ` +
        'parts of the text. It sees none of them if the model is kept, or with ' +
        `${this.engine.session.stats().residentBudget} bytes of memory.`,
    );
  }

  /** Whether reading the file anew can help: it changed, or some of it came from the cache. */
  #mayBeStale(error: QSFError): boolean {
    return error.code === 'file_changed' || this.#source.stats().cache > 0;
  }

  /** Returns the plan's expected speed, if the caller measured its inputs. */
  #expected(): Expected | undefined {
    const { tokenRate, residentBudget, residentRate } = this.engine.session.stats();
    if (tokenRate === 0) return undefined;
    return { tokensPerSecond: tokenRate, residentMemory: residentBudget, residentTokensPerSecond: residentRate };
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

const warner =
  ({ warning }: Listeners, progress: ProgressReport): Warn =>
  (sentence, retry) => {
    warning(hideSecrets(sentence));
    if (retry) progress.retries(retry);
  };
