// An open model in the worker: engine, source and the current generation.
import type { Region } from './boundary.gen.js';
import { makeRoom } from './cache.js';
import type { Batch, EmbedRequest, GenerateRequest, LoadRequest } from './contract.js';
import { checkWebAssembly, detectSharing, detectThreads, detectVariant } from './detect.js';
import { Engine } from './engine.js';
import type { ModuleStarter } from './engine.js';
import { QSFError } from './errors.js';
import type { ErrorName } from './errors.js';
import { Generation } from './generation.js';
import { Runner } from './runner.js';
import { BlobSource } from './sources/blob.js';
import { HttpSource } from './sources/http-source.js';
import { openCache } from './sources/model-cache.js';
import type { ByteSource } from './sources/source.js';
import type { Progress, Stats, Trace } from './types.js';
import { openFile } from './worker-platform.js';

/** Milliseconds between two reports of progress. */
const REPORT_INTERVAL = 100;
/** Errors that a damaged or outdated cache can cause; the file is then read anew, once. */
const STALE: readonly ErrorName[] = [
  'file_changed',
  'bad_magic',
  'bad_version',
  'bad_header',
  'bad_index',
  'bad_section',
  'bad_segment',
  'bad_tensor',
  'bad_checksum',
  'bad_compression',
  'bad_tokenizer',
  'truncated',
];

/** The figure of `stats().plan` that a region counts in; the host's is outside the arena. */
const FIGURES: Record<Exclude<Region, 'host'>, ArenaFigure> = {
  session: 'fixedBytes',
  tables: 'fixedBytes',
  tokenizer: 'fixedBytes',
  pinned: 'pinnedBytes',
  ring: 'ringBytes',
  lanes: 'kvBytes',
  activations: 'scratchBytes',
  logits: 'scratchBytes',
  embedding_rows: 'scratchBytes',
  free: 'freeBytes',
};
type ArenaFigure = 'pinnedBytes' | 'ringBytes' | 'kvBytes' | 'scratchBytes' | 'fixedBytes' | 'freeBytes';

/** What the page hears of. */
export interface Listeners {
  progress(progress: Progress): void;
  warning(warning: string): void;
}

export class Model {
  readonly engine: Engine;
  readonly #source: ByteSource;
  readonly #runner: Runner;
  readonly #request: LoadRequest;
  readonly #tell: Listeners;
  #phase: Progress['phase'] = 'open';
  #lastReport = 0;
  #generation: Generation | undefined;
  /** Settles when the embedding under way has ended. */
  #embedding: Promise<unknown> | undefined;
  #modelHash = '';

  static async create(request: LoadRequest, tell: Listeners, start: ModuleStarter): Promise<Model> {
    checkWebAssembly();
    const variant = request.variant ?? detectVariant();
    const threads = detectThreads(request.threads);
    const tuned = request.threads === undefined;
    const { memory: budget, wasm } = request;
    const shared = threads > 1 || detectSharing(wasm);
    const engine = await Engine.create({ variant, threads, tuned, shared, budget, wasm }, start);
    const source = await openSource(request);
    return new Model(request, engine, source, tell);
  }

  constructor(request: LoadRequest, engine: Engine, source: ByteSource, tell: Listeners) {
    this.#request = request;
    this.engine = engine;
    this.#source = source;
    this.#runner = new Runner(engine, source);
    this.#tell = tell;
    source.onLoaded = () => this.#report();
  }

  /** Opens the model and fetches its weights; what the request asks to do in the background goes on behind. */
  async load(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      if (!(error instanceof QSFError) || !STALE.includes(error.code) || !this.#mayBeStale(error)) throw error;
      await this.#runner.settled();
      await this.#source.restart();
      await this.#open();
    }
    this.#phase = 'ready';
    this.#report(true);
    this.#warnOfCache();
  }

  /** Whether this browser keeps the model, or has begun to. */
  get isKept(): boolean {
    return this.#source.stats().cacheState !== 'off';
  }

  start(request: GenerateRequest): void {
    this.#checkIdle();
    this.#generation = new Generation(this.#runner, request);
  }

  next(): Promise<Batch> {
    if (!this.#generation) throw new QSFError('bad_state', 'No generation was started.');
    return this.#generation.next();
  }

  async embed(request: EmbedRequest): Promise<Float32Array[]> {
    this.#checkIdle();
    const embedding = this.#embedAll(request);
    this.#embedding = embedding;
    try {
      return await embedding;
    } finally {
      this.#embedding = undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#generation?.stop();
    if (!this.#embedding) return;
    this.#runner.stop();
    await this.#embedding.catch(() => {});
  }

  stats(): Stats {
    const { engine } = this;
    const s = engine.stats();
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
    const segments = engine.segments();
    return {
      model: {
        bytes: s.modelBytes,
        weightBytes: s.weightBytes,
        hash: this.#modelHash,
        layers: s.layers,
        vocabSize: s.vocabSize,
        dim: s.dim,
      },
      memory: { budget: s.budget, wasm: engine.memoryBytes, map },
      plan: {
        ...figures,
        segments: s.segments,
        pinnedSegments: s.pinnedSegments,
        ringSlots: s.ringSlots,
        residency: segments.map(({ rawSize, pinned }) => ({ bytes: rawSize, pinned })),
        kv: s.kv,
        maxSeqLen: s.maxSeqLen,
        chunk: s.chunk,
      },
      engine: { variant: engine.variant, isa: s.isa, threads: engine.threads, kernels: engine.kernelCounts() },
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
      position: engine.sequenceStats().position,
    };
  }

  trace(): Trace {
    return this.#runner.tracer.trace(this.engine.segments());
  }

  async close(): Promise<void> {
    await this.stop();
    this.engine.close();
    await this.#source.close();
  }

  #checkIdle(): void {
    if (this.#embedding) throw new QSFError('bad_state', 'Texts are being embedded by this model.');
    if (this.#generation?.stats().running) throw new QSFError('bad_state', 'A generation is running on this model.');
  }

  async #embedAll({ texts, ...how }: EmbedRequest): Promise<Float32Array[]> {
    const embeddings: Float32Array[] = [];
    this.#runner.rearm();
    try {
      for (const text of texts) {
        this.engine.embed(text, how);
        for (let step = await this.#runner.run(); step !== 'done'; step = await this.#runner.run()) {
          if (step === 'stopped') throw new QSFError('cancelled', 'The embedding was stopped.');
          if (step === 'embedding') embeddings.push(this.engine.embedding());
        }
        await this.#runner.turn();
      }
    } catch (error) {
      this.engine.stop();
      throw error;
    }
    return embeddings;
  }

  async #open(): Promise<void> {
    const { open, kv, background } = this.#request;
    this.#phase = 'open';
    this.engine.open({ ...open, fileSize: this.#source.size, kv });
    try {
      await this.#runner.run();
    } catch (error) {
      const { source } = this.#request;
      const foreign = error instanceof QSFError && error.code === 'bad_magic' && typeof source === 'string';
      throw foreign ? error.at(source) : error;
    }
    this.#source.accepted();
    this.#modelHash = this.engine.modelHash();
    this.#phase = 'download';
    this.#report(true);
    const kept = this.#source.keep(this.engine.segments());
    if (background) {
      // What fails here fails again where it is needed, and is told there.
      kept.catch(() => {});
      return;
    }
    this.engine.preload();
    await Promise.all([this.#runner.run(), kept]);
  }

  /** Bytes that the network gives for every token: what does not stay in memory, where no cache has it. */
  #networkPerToken(): number {
    if (!isRemote(this.#request.source) || this.#source.stats().cacheState === 'complete') return 0;
    return this.engine.segments().reduce((sum, { size, pinned }) => sum + (pinned ? 0 : size), 0);
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
    this.#tell.warning(`${why}: it is fetched anew each time that it is opened${streamed}.`);
  }

  /** Whether reading the file anew can help: it changed, or some of it came from the cache. */
  #mayBeStale(error: QSFError): boolean {
    return error.code === 'file_changed' || this.#source.stats().cache > 0;
  }

  #report(always = false): void {
    const now = performance.now();
    if (!always && now - this.#lastReport < REPORT_INTERVAL) return;
    this.#lastReport = now;
    const { loaded, network, cache } = this.#source.stats();
    this.#tell.progress({ phase: this.#phase, loaded, total: this.#source.size, network, cache });
  }
}

/** Whether a model comes from the network. */
const isRemote = (source: string | Blob): source is string => typeof source === 'string' && !source.startsWith('file:');

async function openSource({ source, cache, cacheLimit, network }: LoadRequest): Promise<ByteSource> {
  if (typeof source !== 'string') return new BlobSource(source);
  if (!isRemote(source)) return openFile(source);
  const kept = cache ? await openCache(source) : undefined;
  let http: HttpSource;
  try {
    http = await HttpSource.open(source, kept, network);
  } catch (error) {
    await kept?.close();
    throw error;
  }
  if (!kept?.owned || cacheLimit === undefined) return http;
  if (http.size <= cacheLimit) {
    await makeRoom(cacheLimit - http.size, source);
    return http;
  }
  await http.forget();
  return HttpSource.open(source, undefined, network);
}
