// The opening of a model's file in an engine, which is a model or its draft: the session, its weights, and the source.
import type { OpenOptions, Region } from '../boundary.gen.js';
import type { LoadRequest } from '../contract.js';
import type { DraftStats } from '../draft-types.js';
import { QSFError } from '../errors.js';
import type { ErrorName } from '../errors.js';
import { hideSecrets } from '../secrets.js';
import type { Warn } from '../sources/http-source.js';
import type { ByteSource } from '../sources/source.js';
import type { Progress } from '../progress-types.js';
import type { Engine, OfFile } from '../wasm/engine.js';
import type { MakerStarter } from '../wasm/maker.js';
import { fileDigest } from './file-digest.js';
import { keepsFiles } from '../sources/opfs.js';
import { isRemote, openSource } from './open-source.js';
import { ProgressReport } from './progress.js';
import type { Planned } from './progress.js';
import { chosenRequest } from './repository.js';
import { OF_FILE, Runner } from './runner.js';

/** Errors that a damaged or outdated cache can cause; the file is then read anew, once. */
const STALE: readonly ErrorName[] = ['file_changed', ...OF_FILE];
/** Bytes of a file's header, layout.h's kHeaderSize. */
const HEADER = 128;
/** The beginning of a web page. It is for pages shorter than a header; the engine recognizes longer ones. */
const PAGE = /^\s*<(!doctype|html|head|body|title|\?xml|!--)/i;

/** The figure of `stats().plan` that a region counts in; the host's is not shown. */
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
  draft: 'draftBytes',
  free: 'freeBytes',
};
type ArenaFigure = 'pinnedBytes' | 'ringBytes' | 'kvBytes' | 'scratchBytes' | 'fixedBytes' | 'draftBytes' | 'freeBytes';

/** The page's listeners. */
export interface Listeners {
  progress(progress: Progress): void;
  warning(warning: string): void;
}

/** The opening of a session. */
export interface Opener {
  /** Begins to open the session, which follows an opening of the same file if `again`. Returns whether it is the last. */
  open(options: OpenOptions & OfFile, again: boolean): boolean;
  /** Called after the last opening. Throws if the session is of no use. */
  opened?(): void;
  /** Whether its text is only guessed, so that a plan that makes text worse is no loss. */
  readonly isDraft?: boolean;
}

export class Loader {
  readonly engine: Engine;
  readonly source: ByteSource;
  readonly runner: Runner;
  readonly #request: LoadRequest;
  readonly #tell: Listeners;
  readonly #warn: Warn;
  readonly #progress: ProgressReport;
  readonly #opener: Opener;
  #modelHash = '';
  /** Whether the page knows the plan. */
  #isPlanned = false;
  /** Whether the session was opened for a source that others watch. */
  #watched = false;

  /** Opens the source of a request while the engine starts. Rejects with the engine's error rather than the source's. */
  static async create(
    request: LoadRequest,
    starting: Engine | Promise<Engine>,
    tell: Listeners,
    start: MakerStarter,
    openerOf: (engine: Engine) => Opener,
  ): Promise<Loader> {
    const progress = new ProgressReport((now) => tell.progress(now));
    const warn = warner(tell, progress);
    const open = async () => {
      const chosen = await chosenRequest(request, warn);
      return { chosen, source: await openSource(chosen, start, warn) };
    };
    const opening = open();
    opening.catch(() => {}); // the engine's error comes first
    let engine: Engine;
    try {
      engine = await starting;
    } catch (error) {
      void opening.then(({ source }) => source.close()).catch(() => {});
      throw error;
    }
    const { chosen, source } = await opening;
    return new Loader(chosen, engine, source, tell, openerOf(engine), progress);
  }

  constructor(
    request: LoadRequest,
    engine: Engine,
    source: ByteSource,
    tell: Listeners,
    opener: Opener,
    progress = new ProgressReport((now) => tell.progress(now)),
  ) {
    this.#request = request;
    this.engine = engine;
    this.source = source;
    this.runner = new Runner(engine, source, typeof request.source === 'string' ? request.source : undefined);
    this.#tell = tell;
    this.#warn = warner(tell, progress);
    this.#progress = progress;
    this.#opener = opener;
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
      await this.runner.settled();
      await this.source.restart();
      this.#isPlanned = false;
      await this.#open();
    }
    this.#progress.begin('ready');
    const { warning, tokenBytes } = this.engine.session.stats();
    if (!this.#request.background && tokenBytes === 0) this.source.rest?.();
    if (warning !== '' && !this.#opener.isDraft) this.#tell.warning(warning);
    this.#warnOfCache();
    this.#warnOfExperts();
    this.#warnOfFile();
  }

  /** Whether this browser keeps the model, or has begun to. */
  get isKept(): boolean {
    return this.source.stats().cacheState !== 'off';
  }

  /** Returns the figures of the model, its plan and its reads. */
  stats(): Omit<DraftStats, 'budget'> & { maker: number } {
    const { engine } = this;
    const s = engine.session.stats();
    const source = this.source.stats();
    const figures: Record<ArenaFigure, number> = {
      pinnedBytes: 0,
      ringBytes: 0,
      kvBytes: 0,
      scratchBytes: 0,
      fixedBytes: 0,
      draftBytes: 0,
      freeBytes: 0,
    };
    for (const { region, bytes } of engine.memoryMap()) if (region !== 'host') figures[FIGURES[region]] += bytes;
    const segments = engine.session.segments();
    return {
      maker: source.made?.bytes ?? 0,
      model: {
        bytes: s.modelBytes,
        weightBytes: s.weightBytes,
        hash: this.#modelHash,
        ...(source.made && { madeFrom: source.made.kind }),
        layers: s.layers,
        vocabSize: s.vocabSize,
        dim: s.dim,
      },
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
      io: {
        network: source.network,
        cache: source.cache,
        blob: source.blob,
        engine: this.runner.bytes,
        requests: source.requests,
        cacheState: source.cacheState,
        cachedBytes: source.cachedBytes,
        networkPerToken: this.#networkPerToken(),
      },
    };
  }

  /**
   * Opens the session. Before the first prompt either the whole model is kept, or the session is one whose reads do not
   * depend on the text.
   */
  async #open(): Promise<void> {
    const source = this.source;
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
      if (source.isWatched && !this.#watched) await this.#plan(true);
      this.engine.preload();
      await this.runner.run();
    }
    if (!this.#watched) source.hide?.(this.engine.session.segments().filter(({ byText }) => byText));
  }

  /** Reads the whole file. Rejects with bad_checksum if it is not the requested one. */
  async #checkDigest(sha256: string): Promise<void> {
    const { source } = this.#request;
    const found = await fileDigest(this.source, this.engine);
    if (found === sha256) return this.source.accepted();
    const error = new QSFError('bad_checksum', `the file has the SHA-256 ${found}, not ${sha256}: it is another file`);
    throw typeof source === 'string' ? error.at(source) : error;
  }

  async #plan(watched: boolean): Promise<void> {
    const { open, kv } = this.#request;
    if (!this.#isPlanned) this.#progress.begin('open');
    this.#watched = watched;
    if (this.source.size < HEADER) throw await this.#tooShort();
    const { size: fileSize, makes: vouched = false } = this.source;
    for (let again = this.#isPlanned, isLast = false; !isLast; again = true) {
      if (again) await this.runner.settled();
      isLast = this.#opener.open({ ...open, watched, fileSize, vouched, kv }, again);
      await this.runner.run();
    }
    this.#opener.opened?.();
    this.source.accepted();
    // The tables of a made file do not have all checksums, so that their hash says nothing about the weights.
    this.#modelHash = this.source.makes ? '' : this.engine.session.modelHash();
    if (!this.#isPlanned) this.#progress.begin('plan', this.#planned());
    this.#isPlanned = true;
    this.#progress.begin('download');
  }

  /** Returns the error of a file that is shorter than a header, whose bytes the engine does not request. */
  async #tooShort(): Promise<QSFError> {
    const { size } = this.source;
    const into = new Uint8Array(size);
    await this.source.read({ offset: 0, into, crc: undefined });
    const error = PAGE.test(new TextDecoder().decode(into))
      ? new QSFError('bad_magic', "not a QSF file; it is a web page: is the address the file's own?")
      : new QSFError('truncated', `the file has ${size} bytes, a header alone has ${HEADER}`);
    const { source } = this.#request;
    return typeof source === 'string' ? error.at(source) : error;
  }

  /** Returns the bytes that each token reads from the network. */
  #networkPerToken(): number {
    if (!isRemote(this.#request.source) || this.source.stats().cacheState === 'complete') return 0;
    return this.engine.session.stats().tokenBytes;
  }

  #warnOfCache(): void {
    const { source, cache, cacheLimit } = this.#request;
    if (!isRemote(source) || !cache || this.isKept) return;
    const perToken = this.#networkPerToken();
    const streamed = perToken === 0 ? '' : `, and ${perToken} bytes of it for every token`;
    const why =
      cacheLimit !== undefined && this.source.size > cacheLimit
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

  /** The rate is a measurement: docs/notes/2026-11-29-pages-sources-and-threads.md. */
  #warnOfFile(): void {
    const { source, cache } = this.#request;
    const isFile = source instanceof Blob || Array.isArray(source);
    const isCopied = cache && keepsFiles();
    const { tokenBytes, residentBudget } = this.engine.session.stats();
    if (!isFile || isCopied || tokenBytes === 0) return;
    this.#warn(
      `${String(tokenBytes)} bytes of weights are read from a File or Blob for every token, at about a quarter of the rate of an ` +
        `address that is kept. With ${String(residentBudget)} bytes of memory none are.`,
    );
  }

  /** Whether reading the file anew can help: it changed, or some of it came from the cache. */
  #mayBeStale(error: QSFError): boolean {
    return error.code === 'file_changed' || this.source.stats().cache > 0;
  }

  /** Returns the plan's consequences, and its expected speed if the caller measured its inputs. */
  #planned(): Planned {
    const s = this.engine.session.stats();
    const { weightBytes, pinnedBytes, tokenBytes, kv, maxSeqLen } = s;
    const plan = { weightBytes, pinnedBytes, tokenBytes, kv, maxSeqLen };
    if (s.tokenRate === 0) return { plan };
    const { tokenRate: tokensPerSecond, residentBudget: residentMemory, residentRate: residentTokensPerSecond } = s;
    return { plan, expected: { tokensPerSecond, residentMemory, residentTokensPerSecond } };
  }
}

const warner =
  ({ warning }: Listeners, progress: ProgressReport): Warn =>
  (sentence, retry) => {
    warning(hideSecrets(sentence));
    if (retry) progress.retries(retry);
  };
