// An engine and a source that do as a test says: a session's phases over real memory, without a model.
import { createHash } from 'node:crypto';

import type {
  AnswerPiece,
  EmbeddingOptions,
  End,
  Failure as Failed,
  GrammarKind,
  KvType,
  OpenOptions,
  Pooling,
  PromptOptions,
  ReadRequest,
  Region,
  RegionBytes,
  SamplerOptions,
  Segment,
  SequenceStats,
  Session,
  SessionStats,
  Step,
} from '../../web/src/boundary.gen.js';
import type { ChatRequest, SamplingLists } from '../../web/src/contract.js';
import { Engine } from '../../web/src/wasm/engine.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import type { ErrorName } from '../../web/src/errors.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from '../../web/src/sources/source.js';
import type { Failure, Script } from './script.js';
import { stagedLists } from './staged.js';
import type { StagedSizes } from './staged.js';
import { pause } from './waiting.js';

export { pause, stays, until } from './waiting.js';

/** Where the fake puts what it reads and what is staged, and how much that may be. */
const ARENA = 65_536;
const STAGING = 4096;
const EMBEDDING = 2048;
const STAGED = 32_768;
const HEADER = 128;
/** Tokens of every prompt. */
const PROMPT = 7;

const unscripted = (n: number) => `<${String(n)}>`;

/** The byte of every file at an offset. */
export const byteAt = (offset: number) => (offset * 31 + 7) & 0xff;

/** What an embedding leaves to the model if it is undefined. */
interface Chosen {
  pooling: Pooling | undefined;
  normalize: boolean | undefined;
}

export class FakeSession implements Session {
  readonly memory = new WebAssembly.Memory({ initial: 4, maximum: 4 });
  readonly #bytes = new Uint8Array(this.memory.buffer);
  script: Script = {};
  /** Of the plan. */
  warning = '';
  tokenRate = 0;
  /** open(), start() and complete() refuse with these, as long as they are set. */
  refuse: {
    open?: Failure;
    start?: Failure;
    embed?: Failure;
    complete?: Failure | ((ticket: number) => Failure | undefined);
  } = {};
  table: Segment[] = [0, 1, 2].map((i) => ({
    ...{ offset: HEADER + i * 1000, size: 1000, rawSize: 1200, crc: i, pinned: i < 2, byText: false },
  }));
  map: [Region, number][] = [];
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  /** Of each open(). */
  readonly opened: (OpenOptions & { fileSize: number; kv: KvType | undefined })[] = [];
  /** Of the last start(). */
  options: (SamplerOptions & PromptOptions) | undefined;
  text = '';
  ids: number[] = [];
  stops: string[] = [];
  /** Of the last sampling(). */
  lists: SamplingLists = { biases: [], samplers: undefined, breakers: undefined };
  /** Of the last guide() and converse(). */
  grammar: { kind: GrammarKind; text: string } | undefined;
  chat: ChatRequest | undefined;
  stepped = 0;
  /** Of each embed(): its options, and its text or ids. */
  readonly embeds: { options: EmbeddingOptions & Chosen; text: string; ids: number[] }[] = [];
  #phase: 'opening' | 'ready' | 'preloading' | 'generating' | 'embedding' | 'failed' = 'ready';
  #queue: ReadRequest[] = [];
  #missing = new Set<number>();
  #tickets = 0;
  #made = 0;
  #worked = 0;
  #asked = -1;
  /** Tokens of the sequence, and those that were fed. */
  length = 0;
  #fed = 0;
  #sum = createHash('sha256');
  /** Tokens that were fed before the last prompt. */
  #begun = 0;
  #end: End = 'none';
  #failure: Failure | undefined;
  #told: Failure | undefined;

  /** Reads that were asked for and not completed yet. */
  get missing(): number {
    return this.#missing.size;
  }

  open(_budget: number, size: number, kv: KvType | undefined, options: OpenOptions): Failed | undefined {
    this.calls.push(`open ${String(size)}`);
    this.opened.push({ ...options, fileSize: size, kv });
    if (this.refuse.open) return failed(this.refuse.open);
    this.#phase = 'opening';
    this.#failure = undefined;
    this.#missing.clear();
    this.#ask(0, HEADER);
    return undefined;
  }

  step(): Step {
    this.stepped++;
    return this.#step();
  }

  #step(): Step {
    if (this.#failure) {
      this.#told = this.#failure;
      this.#failure = undefined;
      this.#phase = 'failed';
      this.#end = 'error';
    }
    if (this.#phase === 'failed') return 'error';
    if (this.#phase === 'ready') return 'ready';
    if (this.#missing.size > 0) return 'need_bytes';
    if (this.#phase === 'generating') return this.#generate();
    if (this.#phase === 'embedding') return this.#embed();
    this.#phase = 'ready';
    return 'ready';
  }

  #generate(): Step {
    const { work = 0, reads, end, fails, fed } = this.script;
    const n = this.#made;
    if (fails?.before === n) {
      this.#failure = fails.error;
      return this.#step();
    }
    if (end?.after === n) return this.#finish(end.why);
    if (n === this.options!.maxTokens) return this.#finish('length');
    if (this.#worked++ < work) {
      if (n === 0 && fed) this.#fed = this.#begun + fed(this.#worked);
      return 'working';
    }
    if (reads?.(n) && this.#asked !== n) {
      this.#asked = n;
      this.#ask(this.table[2]!.offset, this.table[2]!.size, this.table[2]!.crc);
      return 'need_bytes';
    }
    this.#worked = 0;
    this.#made++;
    this.#fed = this.length++;
    return 'token';
  }

  /** The script's work, one embedding, the end. */
  #embed(): Step {
    if (this.#worked++ < (this.script.work ?? 0)) return 'working';
    return this.#made++ === 0 ? 'embedding' : this.#finish('length');
  }

  #finish(why: End): Step {
    this.#end = why;
    this.#phase = 'ready';
    return 'done';
  }

  #ask(offset: number, size: number, crc?: number): void {
    const ticket = ++this.#tickets;
    this.#missing.add(ticket);
    this.#queue.push({
      ...{ offset, size, ticket, into: ARENA + (offset % ARENA) },
      ...{ crc: crc ?? 0, hasCrc: crc !== undefined },
    });
  }

  nextRequest(): ReadRequest | undefined {
    return this.#queue.shift();
  }

  crc32(at: number, size: number): number {
    return crc32(this.#bytes.slice(at, at + size));
  }

  addToDigest(size: number): void {
    this.#sum.update(this.#bytes.slice(STAGING, STAGING + size));
  }
  digest(): string {
    const sum = this.#sum;
    this.#sum = createHash('sha256');
    return sum.digest('hex');
  }

  complete(ticket: number): Failed | undefined {
    const { complete } = this.refuse;
    const refused = typeof complete === 'function' ? complete(ticket) : complete;
    this.#missing.delete(ticket);
    if (!refused) return undefined;
    this.#failure = refused;
    return failed(refused);
  }

  fail(ticket: number, code: number, size: number): void {
    const sentence = this.#text(0, size);
    const name = Object.entries(errorNumbers).find(([, number]) => number === code)![0] as ErrorName;
    this.calls.push(`fail ${name}`);
    this.#missing.delete(ticket);
    this.#failure = { code: name, sentence };
  }

  stage(size: number): Uint8Array | undefined {
    return size <= STAGED ? this.#bytes.subarray(STAGING, STAGING + size) : undefined;
  }

  #text(begin: number, size: number): string {
    return new TextDecoder().decode(this.#bytes.slice(STAGING + begin, STAGING + begin + size));
  }

  #ids(n: number): number[] {
    return [...new Uint32Array(this.memory.buffer, STAGING, n)];
  }

  start(
    sequence: number,
    size: number,
    tokens: number,
    stops: number,
    sampler: SamplerOptions,
    options: PromptOptions,
  ): Failed | undefined {
    this.calls.push(`start ${String(sequence)}`);
    if (this.refuse.start) return failed(this.refuse.start);
    this.options = { ...sampler, ...options };
    this.text = this.#text(0, size);
    this.ids = this.#ids(tokens);
    this.stops = this.#text(size + 4 * tokens, stops)
      .split('\0')
      .slice(0, -1);
    this.length += PROMPT;
    this.#begun = this.#fed;
    this.#phase = 'generating';
    this.#end = 'none';
    this.#made = this.#worked = 0;
    this.#asked = -1;
    return undefined;
  }

  guide(kind: GrammarKind | undefined, size: number): undefined {
    this.grammar = kind && { kind, text: this.#text(0, size) };
  }

  sampling(_: number, ...sizes: StagedSizes): undefined {
    this.lists = stagedLists(this.#bytes.slice(STAGING), ...sizes);
  }

  converse(template: number, values: number, more: number): undefined {
    const at = [0, template, template + values];
    const [a, b, c] = [template, values, more].map((size, i) => this.#text(at[i]!, size));
    this.chat = { template: a!, values: b!, more: c! };
  }

  conversation(): Uint8Array {
    return new TextEncoder().encode(this.chat?.values);
  }

  answer(sequence: number, stops: number, sampler: SamplerOptions, options: PromptOptions): Failed | undefined {
    return this.start(sequence, 0, 0, stops, sampler, options);
  }

  embed(
    sequence: number,
    size: number,
    tokens: number,
    pooling: Pooling | undefined,
    normalize: boolean | undefined,
    options: EmbeddingOptions,
  ): Failed | undefined {
    this.calls.push(`embed ${String(sequence)}`);
    if (this.refuse.embed) return failed(this.refuse.embed);
    this.embeds.push({
      options: { ...options, pooling, normalize },
      text: this.#text(0, size),
      ids: this.#ids(tokens),
    });
    this.#phase = 'embedding';
    this.#made = this.#worked = 0;
    return undefined;
  }

  /** Of the n-th text: n and a half, where the next one's will be. */
  embedding(): Float32Array {
    const values = new Float32Array(this.memory.buffer, EMBEDDING, 2);
    values.set([this.embeds.length, 0.5]);
    return values;
  }

  stop(sequence: number): void {
    this.calls.push(`stop ${String(sequence)}`);
    if (this.#phase !== 'generating' && this.#phase !== 'embedding') return;
    this.#end = 'cancelled';
    this.#phase = 'ready';
  }

  rewind(n: number, sequence: number): Failed | undefined {
    this.calls.push(`rewind ${String(n)} ${String(sequence)}`);
    if (n > this.length)
      return failed({
        code: 'bad_argument',
        sentence: `the sequence has ${String(this.length)} tokens, not ${String(n)}`,
      });
    this.length = n;
    this.#fed = Math.min(this.#fed, n);
    return undefined;
  }

  preload(): undefined {
    this.calls.push('preload');
    this.#phase = 'preloading';
    for (const { offset, size, crc, pinned } of this.table) if (pinned) this.#ask(offset, size, crc);
  }

  close(): void {
    this.calls.push('close');
  }

  sequence(): number {
    return 0;
  }
  token(): number {
    return 100 + this.#made - 1;
  }
  piece(): string {
    if (this.#phase !== 'generating') return '';
    return (this.script.piece ?? unscripted)(this.#made - 1);
  }
  parts(): AnswerPiece[] {
    const { parts, lastParts = [] } = this.script;
    if (this.#phase !== 'generating') return lastParts;
    const text = this.piece();
    return parts ? parts(this.#made - 1) : text === '' ? [] : [{ kind: 'text', text }];
  }
  end(sequence: number): End {
    return sequence === 0 ? this.#end : 'none';
  }
  error(): Failed {
    return failed(this.#told!);
  }
  modelHash(): string {
    return 'm0de1';
  }
  logitsHash(): string {
    return `10g175 ${String(this.#made)}`;
  }
  /** A token for each byte. */
  tokenize(size: number, _special: boolean): Uint32Array | Failed {
    return Uint32Array.from(this.#bytes.slice(STAGING, STAGING + size));
  }
  detokenize(token: number, _special: boolean): Uint8Array {
    const { text, piece = unscripted } = this.script;
    const stands = (text ?? piece)(token - 100);
    return typeof stands === 'string' ? new TextEncoder().encode(stands) : stands;
  }
  beginToken(): number | undefined {
    return 1;
  }
  endTokens(): Uint32Array {
    return Uint32Array.of(2, 3);
  }
  metadata(size: number): string {
    return { 'general.name': 'Small', 'chat.template': '{{ messages }}' }[this.#text(0, size)] ?? '';
  }
  stats(): SessionStats {
    const zero = { budget: 0, modelBytes: 0, weightBytes: 0, pinnedBytes: 0, pinnedSegments: 0, ringSlots: 0 };
    const one = { ringBytes: 0, maxSeqLen: 64, modelSeqLen: 64, chunk: 1, sequences: 1, vocabSize: 512, layers: 1 };
    const tokenBytes = this.table.reduce((sum, { size, pinned }) => sum + (pinned ? 0 : size), 0);
    const expected = { tokenBytes, tokenRate: this.tokenRate, residentBudget: 9, residentRate: 2 * this.tokenRate };
    const experts = { expertsChosen: 0, expertsFound: 0, expertBytes: 0 };
    const told = { contextReason: "the model's own", kvReason: "the model's own", moreContext: 'a shorter text' };
    return {
      ...told,
      warning: this.warning,
      ...zero,
      ...one,
      ...expected,
      ...experts,
      dim: 2,
      segments: this.table.length,
      kv: 'f16',
      isa: 'fake',
      bytesRead: 0,
    };
  }
  sequenceStats(): SequenceStats {
    return { position: this.#fed, promptTokens: PROMPT, generatedTokens: this.#made };
  }
  memoryMap(): RegionBytes[] {
    return this.map.map(([region, bytes]) => ({ region, bytes }));
  }
  kernelCounts(): [] {
    return [];
  }
  segments(): Segment[] {
    return this.table;
  }
}

const failed = ({ code, sentence }: Failure): Failed => ({ code: errorNumbers[code], sentence });

export function fakeEngine(): { engine: Engine; instance: FakeSession } {
  const instance = new FakeSession();
  return { engine: new Engine('simd', 1, instance, instance.memory), instance };
}

export class FakeSource implements ByteSource {
  size = HEADER + 3000;
  isWatched = false;
  keeps = true;
  byteAt = byteAt;
  onLoaded: (() => void) | undefined;
  /** How reads end: at once, after a while, when release() is called, or not at all. */
  mode: 'now' | 'later' | 'held' = 'now';
  /** Reads reject with this. */
  error: unknown;
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  kept: readonly Piece[] | undefined;
  hidden: readonly Piece[] | undefined;
  readonly pieces: ReadPiece[] = [];
  /** What keep() gives. */
  keeping: Promise<void> = Promise.resolve();
  loaded = 0;
  fromCache = 0;
  cacheState: SourceStats['cacheState'] = 'partial';
  onRestart: () => void = () => undefined;
  readonly #held: (() => void)[] = [];

  read(piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    this.pieces.push(piece);
    const fill = () => {
      if (this.error !== undefined) throw this.error;
      for (let i = 0; i < into.length; i++) into[i] = this.byteAt(offset + i);
    };
    if (this.mode === 'held') return new Promise<void>((resolve) => this.#held.push(resolve)).then(fill);
    if (this.mode === 'later' || this.error !== undefined) return pause().then(fill);
    fill();
    return undefined;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Ends the reads that are held, or the first so many. */
  release(most = Infinity): void {
    for (const resolve of this.#held.splice(0, Math.min(most, this.#held.length))) resolve();
  }

  accepted(): void {
    this.calls.push('accepted');
  }
  rejected(offset: number, size: number): void {
    this.calls.push(`rejected ${String(offset)} ${String(size)}`);
  }
  keep(pieces: readonly Piece[]): Promise<void> {
    this.calls.push('keep');
    this.kept = pieces;
    return this.keeping;
  }
  hide(pieces: readonly Piece[]): void {
    this.hidden = pieces;
  }
  async restart(): Promise<void> {
    this.calls.push('restart');
    this.onRestart();
  }
  stats(): SourceStats {
    const none = { network: 0, blob: 0, requests: 0, cachedBytes: 0 };
    return { ...none, cacheState: this.cacheState, cache: this.fromCache, loaded: this.loaded };
  }
  async close(): Promise<void> {
    this.calls.push('close');
    this.release();
  }
}
