// An engine that does as a test says: a session's phases over real memory, without a model.
import { createHash } from 'node:crypto';

import type {
  AnswerPiece,
  EmbeddingOptions,
  End,
  Failure as Failed,
  GrammarKind,
  OpenOptions,
  Pooling,
  PromptOptions,
  ReadRequest,
  Region,
  RegionBytes,
  SamplerOptions,
  SavedHeader,
  Segment,
  SequenceStats,
  TokenLogprob,
  Session,
  SessionStats,
  Step,
} from '../../web/src/boundary.gen.js';
import type { ChatRequest, SamplingLists } from '../../web/src/contract.js';
import { Engine } from '../../web/src/wasm/engine.js';
import type { OfFile } from '../../web/src/wasm/engine.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import type { ErrorName } from '../../web/src/errors.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import { WithoutDraft } from './fake-draft.js';
import { HEADER } from './fake-source.js';
import type { Failure, Script } from './script.js';
import { stagedLists } from './staged.js';
import type { StagedSizes } from './staged.js';

export { FakeSource, byteAt } from './fake-source.js';
export { pause, stays, until } from './waiting.js';

/** Where the fake puts what it reads and what is staged, and how much that may be. */
const ARENA = 65_536;
const STAGING = 196_608;
const EMBEDDING = 2048;
const STAGED = 65_536;
/** Tokens of every prompt. */
const PROMPT = 7;

const unscripted = (n: number) => `<${String(n)}>`;

/** What an embedding leaves to the model if it is undefined. */
interface Chosen {
  pooling: Pooling | undefined;
  normalize: boolean | undefined;
}

export class FakeSession extends WithoutDraft implements Session {
  readonly memory = new WebAssembly.Memory({ initial: 4, maximum: 4 });
  readonly #bytes = new Uint8Array(this.memory.buffer);
  script: Script = {};
  /** Of the plan. */
  warning = '';
  guesses = { made: 0, right: 0 };
  tokenRate = 0;
  /** open(), start() and complete() refuse with these, as long as they are set. */
  refuse: {
    open?: Failure;
    start?: Failure;
    embed?: Failure | (() => Failure | undefined);
    save?: Failure;
    restore?: Failure;
    complete?: Failure | ((ticket: number) => Failure | undefined);
  } = {};
  table: Segment[] = [0, 1, 2].map((i) => ({
    ...{ offset: HEADER + i * 1000, size: 1000, rawSize: 1200, crc: i, pinned: i < 2, byText: false },
  }));
  map: [Region, number][] = [];
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  /** Of each open(). */
  readonly opened: (OpenOptions & OfFile)[] = [];
  /** Of the last start(). */
  options: (SamplerOptions & PromptOptions) | undefined;
  text = '';
  ids: number[] = [];
  stops: string[] = [];
  /** Of the last hold(). */
  held: { thought: number; calls: boolean; required: boolean; only: string } | undefined;
  /** Of the last sampling(). */
  lists: SamplingLists = { biases: [], samplers: undefined, breakers: undefined };
  /** Of the last guide() and converse(). */
  grammar: { kind: GrammarKind; text: string } | undefined;
  chat: ChatRequest | undefined;
  stepped = 0;
  /** Of each embed(): its options, and its text or ids. */
  readonly embeds: { options: EmbeddingOptions & Chosen; text: string; ids: number[] }[] = [];
  /** Of each rerank(): its texts. */
  readonly pairs: [query: string, text: string][] = [];
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
  /** Bytes that a saved sequence has after its note, and those that restore() was given. */
  saved = 100_000;
  restored: number[] = [];
  #unsaved = 0;
  #restoring = 0;
  /** Bytes that are staged. */
  #staged = 0;
  #failure: Failure | undefined;
  #told: Failure | undefined;

  /** Reads that were asked for and not completed yet. */
  get missing(): number {
    return this.#missing.size;
  }

  open(...[, size, vouched, kv, options]: Parameters<Session['open']>): Failed | undefined {
    this.calls.push(`open ${String(size)}`);
    this.opened.push({ ...options, fileSize: size, vouched, kv });
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
    this.#staged = size;
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
    if (options.anew) this.length = this.#fed = 0;
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

  hold(thought: number, calls: boolean, required: boolean, name: number): undefined {
    this.held = { thought, calls, required, only: this.#text(0, name) };
  }

  sampling(_: number, ...sizes: StagedSizes): undefined {
    this.lists = stagedLists(this.#bytes.slice(STAGING), ...sizes);
  }

  converse(_: number | undefined, template: number, values: number, more: number): undefined {
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
    const refused = typeof this.refuse.embed === 'function' ? this.refuse.embed() : this.refuse.embed;
    if (refused) return failed(refused);
    const [text, ids] = [this.#text(0, size), this.#ids(tokens)];
    this.embeds.push({ options: { ...options, pooling, normalize }, text, ids });
    this.#phase = 'embedding';
    this.#made = this.#worked = 0;
    return undefined;
  }

  rerank(sequence: number, query: number, document: number): Failed | undefined {
    this.pairs.push([this.#text(0, query), this.#text(query, document)]);
    return this.embed(sequence, 0, 0, undefined, undefined, { addBos: true, special: true });
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

  /** A header of the note's numbers and of the number of bytes of the rest, which count up. */
  beginSave(sequence: number, size: number, crc: number): Uint8Array | Failed {
    this.calls.push(`save ${String(sequence)}`);
    if (this.refuse.save) return failed(this.refuse.save);
    this.#unsaved = this.saved;
    const header = new Uint8Array(this.memory.buffer, EMBEDDING, HEADER);
    new Uint32Array(header.buffer, EMBEDDING, 4).set([this.length, size, crc, this.saved]);
    return header;
  }

  save(): Uint8Array | Failed {
    const n = Math.min(this.#unsaved, this.#staged);
    const begin = this.saved - this.#unsaved;
    for (let i = 0; i < n; i++) this.#bytes[STAGING + i] = (begin + i) & 0xff;
    this.#unsaved -= n;
    return this.#bytes.subarray(STAGING, STAGING + n);
  }

  beginRestore(sequence: number, size: number): SavedHeader | Failed {
    this.calls.push(`restore ${String(sequence)} ${String(size)}`);
    if (this.refuse.restore) return failed(this.refuse.restore);
    const [tokens, noteBytes, noteCrc, rest] = new Uint32Array(this.#bytes.slice(STAGING, STAGING + 16).buffer);
    [this.#restoring, this.restored] = [rest!, []];
    return { tokens: tokens!, noteBytes: noteBytes!, noteCrc: noteCrc! };
  }

  restore(size: number): boolean | Failed {
    this.restored.push(...this.#bytes.slice(STAGING, STAGING + size));
    return this.restored.length === 2 * this.#restoring;
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
  /** The n-th token has the log-probability -n, and the others half a unit less. */
  logprobs(): TokenLogprob[] {
    const n = this.#made;
    const top = Array.from({ length: this.options?.topLogprobs ?? 0 }, (_, k) => ({
      token: 100 + k,
      logprob: k === 1 ? -Infinity : -n - 0.5,
    }));
    return [{ token: this.token(), logprob: -n }, ...top];
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
    const one = {
      ...{ ringBytes: 0, kvWindow: 0, kvSinks: 0, kvChosen: 0 },
      maxSeqLen: 64,
      modelSeqLen: 64,
      chunk: 1,
      sequences: 1,
      vocabSize: 512,
      layers: 1,
      guesses: 0,
    };
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
    const guesses = { guessedTokens: this.guesses.made, rightTokens: this.guesses.right };
    return { position: this.#fed, promptTokens: PROMPT, generatedTokens: this.#made, reusedTokens: 0, ...guesses };
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
