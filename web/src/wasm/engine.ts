// The engine in this worker: a session in a WebAssembly module. Texts go in as bytes, failures come out as errors.
import { regionNames } from '../boundary.gen.js';
import type { Failure, KvType, LocalTime, OpenOptions, ReadRequest, SavedHeader, Session } from '../boundary.gen.js';
import { KiB, MiB, PAGE } from '../constants.js';
import type { ChatRequest, EmbedRequest, GenerateRequest, Hold, SamplingLists, WasmSource } from '../contract.js';
import { QSFError, errorName } from '../errors.js';
import type { ErrorName } from '../errors.js';
import { errorNumbers } from '../errors.gen.js';
import { crc32 } from '../sources/crc32.js';
import type { GeneratedToken } from '../token-types.js';
import type { MemoryRegion, ModelInfo, SpecialToken, Variant } from '../types.js';

/** engine.h's kHostReserve and one page: with less there is no arena at all. */
const SMALLEST = MiB + PAGE;

/** Bytes of a saved sequence that one call moves. */
const PIECE = 64 * KiB;

/** The number of tokens after which a thought is never ended. */
const UNLIMITED = 0xffffffff;
const NO_LISTS: SamplingLists = { biases: [], samplers: undefined, breakers: undefined };

/** A module as wasm/bindings.cpp makes it. It has as many sessions as its memory has room for. */
export interface EngineModule {
  /** `threads` includes the caller's thread. With `tuned`, tokens use as many of them as are fastest at the moment. */
  Session: new (
    threads: number,
    tuned: boolean,
  ) => Session & {
    /** Ends the threads and frees the arena. */
    delete(): void;
  };
}

/** Starts the WebAssembly module of a variant in a memory. A shared memory selects the module with threads. */
export type ModuleStarter = (
  source: WasmSource,
  variant: Variant,
  threads: number,
  memory: WebAssembly.Memory,
) => Promise<EngineModule>;

export interface EngineOptions {
  variant: Variant;
  threads: number;
  /** Whether other threads see the memory, which several computing threads need. */
  shared: boolean;
  /** Whether tokens use as many of the threads as are fastest at the moment. */
  tuned: boolean;
  budget: number;
  wasm: WasmSource;
}

/** The arguments of an opening that callers do not choose as they are. */
export interface OfFile {
  fileSize: number;
  vouched: boolean;
  kv: KvType | undefined;
}

/** The calls that cannot fail. */
export type SureCalls = { [K in keyof Session as Failure extends ReturnType<Session[K]> ? never : K]: Session[K] };

export class Engine {
  readonly variant: Variant;
  readonly threads: number;
  readonly session: SureCalls;
  readonly #session: Session;
  readonly #memory: WebAssembly.Memory;
  readonly #encoder = new TextEncoder();
  /** By sequence: text that follows its tokens and is fed before the next prompt. */
  readonly #rests: string[] = [];

  readonly #another: (() => Session) | undefined;

  /** `another` makes a further session of the module. */
  constructor(
    variant: Variant,
    threads: number,
    session: Session,
    memory: WebAssembly.Memory,
    another?: () => Session,
  ) {
    this.variant = variant;
    this.threads = threads;
    this.session = this.#session = session;
    this.#memory = memory;
    this.#another = another;
  }

  /**
   * Instantiates the module in a memory of exactly `budget` bytes, a multiple of 64 KiB. Rejects with budget_too_small,
   * out_of_memory or unsupported_host.
   */
  static async create(options: EngineOptions, start: ModuleStarter): Promise<Engine> {
    const { variant, threads, tuned, shared, budget, wasm } = options;
    if (budget < SMALLEST) {
      throw new QSFError(
        'budget_too_small',
        `any model needs at least ${(SMALLEST / MiB).toFixed(2)} MiB, and the budget is ${(budget / MiB).toFixed(2)} MiB`,
      );
    }
    const pages = budget / PAGE;
    let wasmMemory: WebAssembly.Memory;
    try {
      wasmMemory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
    } catch (cause) {
      throw new QSFError('out_of_memory', `the browser refused ${budget} bytes of WebAssembly memory`, { cause });
    }
    try {
      const { Session } = await start(wasm, variant, threads, wasmMemory);
      return new Engine(variant, threads, new Session(threads, tuned), wasmMemory, () => new Session(1, false));
    } catch (cause) {
      if (cause instanceof QSFError) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new QSFError('unsupported_host', `the WebAssembly module did not load: ${why}`, { cause });
    }
  }

  get memoryBytes(): number {
    return this.#memory.buffer.byteLength;
  }

  /**
   * Begins a session and forgets an earlier one. No read of the earlier one may be under way. Checksums of segments are
   * not compared if the source vouches for them.
   */
  open({ fileSize, vouched, kv, ...options }: OpenOptions & OfFile): void {
    check(this.#session.open(this.memoryBytes, fileSize, vouched, kv, options));
  }

  /** Returns the engine of a draft, which has an arena of its own in the memory of this engine, and uses its threads. */
  makeDraft(): Engine {
    const session = this.#another!();
    this.#session.useDraft(session);
    return new Engine(this.variant, this.threads, session, this.#memory);
  }

  /**
   * Begins a session as a draft, before the model's own session with these options. Returns whether it is the last one;
   * otherwise another one follows, with `again`, once this one has opened.
   */
  openDraft({ fileSize, vouched, kv: _, ...options }: OpenOptions & OfFile, again: boolean): boolean {
    return got(this.#session.openDraft(this.memoryBytes, fileSize, vouched, again, options));
  }

  /** Checks that the draft can guess for this engine. Both have opened. */
  checkDraft(): void {
    check(this.#session.checkDraft());
  }

  /** Returns sentences about what will not be fast. */
  draftNotes(): string[] {
    const notes: string[] = [];
    for (let sentence; (sentence = this.#session.draftNote(notes.length).sentence) !== '';) notes.push(sentence);
    return notes;
  }

  /** Begins the guesses for a sequence. Returns whether one wants any; the draft then has to be stepped. */
  beginGuess(): boolean {
    return got(this.#session.beginGuess());
  }

  /** Returns the error of a step() that returned 'error'. */
  error(): QSFError {
    return errorOf(this.#session.error());
  }

  /** Returns the place in memory for a request's bytes. The memory's size never changes. */
  target({ into, size }: ReadRequest): Uint8Array {
    return new Uint8Array(this.#memory.buffer, into, size);
  }

  /** Returns the CRC-32 of the bytes that are there now. */
  crc32({ into, size }: ReadRequest): number {
    return this.#session.crc32(into, size);
  }

  /** Adds bytes of a file to the digest that `session.digest()` returns. */
  addToDigest(bytes: Uint8Array): void {
    this.#stage([bytes]);
    this.#session.addToDigest(bytes.length);
  }

  complete(ticket: number): void {
    check(this.#session.complete(ticket));
  }

  fail(ticket: number, error: { code: ErrorName; sentence: string }): void {
    const sentence = this.#encoder.encode(error.sentence);
    this.#stage([sentence]);
    this.#session.fail(ticket, errorNumbers[error.code], sentence.length);
  }

  /** Begins a generation. The answer to a conversation always begins the sequence anew. */
  start({ prompt, grammar, hold, lists = NO_LISTS, stop, ...options }: GenerateRequest, sequence: number): void {
    if (stop.some((text) => text.includes('\0'))) {
      throw new QSFError('bad_argument', 'a stop string holds a zero character');
    }
    this.#setLists(lists, sequence);
    const rules = this.#encoder.encode(grammar?.text ?? '');
    this.#stage([rules]);
    check(this.#session.guide(grammar?.kind, rules.length));
    this.#hold(hold);
    const stops = this.#texts(stop);
    if (isChat(prompt)) {
      this.#converse(prompt, sequence);
      this.#stage([stops]);
      check(this.#session.answer(sequence, stops.length, options, options));
      this.#rests[sequence] = '';
      return;
    }
    const rest = options.anew ? '' : this.rest(sequence);
    const { body, size, tokens } = this.#body(rest === '' ? prompt : this.#withRest(rest, prompt));
    this.#stage([body, stops]);
    check(this.#session.start(sequence, size, tokens, stops.length, options, options));
    this.#rests[sequence] = '';
  }

  /** Ends the sequence after its first `n` tokens; `rest` is text that follows them. */
  rewind(n: number, sequence: number, rest = ''): void {
    check(this.#session.rewind(n, sequence));
    this.#rests[sequence] = rest;
  }

  /** Returns the text that follows the sequence's tokens and is fed before the next prompt. */
  rest(sequence: number): string {
    return this.#rests[sequence] ?? '';
  }

  /** Begins to save the sequence. Returns the header of its file, which the note follows. */
  beginSave(note: Uint8Array, sequence: number): Uint8Array<ArrayBuffer> {
    return copied(this.#session.beginSave(sequence, note.length, crc32(note)));
  }

  /** Returns the next bytes of the file; none at its end. */
  savedPiece(): Uint8Array<ArrayBuffer> {
    this.#stage([], PIECE);
    return copied(this.#session.save());
  }

  /** Begins to replace the sequence by a saved one. Nothing changes yet. */
  beginRestore(header: Uint8Array, size: number, sequence: number): SavedHeader {
    this.#stage([header]);
    const saved = this.#session.beginRestore(sequence, size);
    if ('code' in saved) throw errorOf(saved);
    return saved;
  }

  /**
   * Takes the next bytes of the file after the note, which come twice. Returns whether the sequence of beginRestore() is
   * restored, which `rest` then follows.
   */
  restore(bytes: Uint8Array, sequence: number, rest: string): boolean {
    let isDone = false;
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE);
      this.#stage([piece]);
      isDone = got(this.#session.restore(piece.length));
    }
    if (isDone) this.#rests[sequence] = rest;
    return isDone;
  }

  /** Begins the embedding of one text, with which the sequence begins anew. */
  embed(
    text: string | Uint32Array,
    { pooling, normalize, ...options }: Omit<EmbedRequest, 'texts' | 'query'>,
    sequence: number,
  ): void {
    const { body, size, tokens } = this.#body(text);
    this.#stage([body]);
    this.#rests[sequence] = '';
    check(this.#session.embed(sequence, size, tokens, pooling, normalize, options));
  }

  /** Begins the score of a text for a query, with which the sequence begins anew. */
  rerank(query: string, text: string, sequence: number): void {
    const texts = [query, text].map((each) => this.#encoder.encode(each));
    this.#stage(texts);
    this.#rests[sequence] = '';
    check(this.#session.rerank(sequence, texts[0]!.length, texts[1]!.length));
  }

  preload(): void {
    check(this.#session.preload());
  }

  /** Returns the text of a conversation. */
  render(chat: ChatRequest): string {
    this.#converse(chat);
    return new TextDecoder().decode(this.#session.conversation().slice());
  }

  tokenize(text: string, special: boolean): Uint32Array {
    const body = this.#encoder.encode(text);
    // A token stands for a byte or more, but a normalizer may put a character in front; ids are aligned.
    this.#stage([body], 4 * (body.length + 8) + 3);
    const ids = this.#session.tokenize(body.length, special);
    if ('code' in ids) throw errorOf(ids);
    return ids.slice();
  }

  detokenize(tokens: Uint32Array, special: boolean): string {
    const { vocabSize } = this.#session.stats();
    const decoder = new TextDecoder();
    let text = '';
    for (const token of tokens) {
      if (token >= vocabSize)
        throw new QSFError('bad_token', `token ${token} is not in the vocabulary of ${vocabSize}`);
      // TextDecoder refuses shared memory, so it gets a copy.
      text += decoder.decode(this.#session.detokenize(token, special).slice(), { stream: true });
    }
    return text + decoder.decode();
  }

  /** Returns the last token with its log-probability and the likeliest tokens. */
  logprobs(): GeneratedToken {
    const decoder = new TextDecoder();
    const [token, ...top] = this.#session.logprobs().map(({ token: id, logprob }) => {
      const bytes = this.#session.detokenize(id, true).slice();
      return { id, text: decoder.decode(bytes), bytes: Array.from(bytes), logprob };
    });
    return { ...token!, top };
  }

  info(): ModelInfo {
    const { vocabSize, modelSeqLen } = this.#session.stats();
    const text = (key: string) => this.#metadata(key) || undefined;
    const token = (id: number): SpecialToken => ({ id, text: this.detokenize(Uint32Array.of(id), true) });
    const begin = this.#session.beginToken();
    return {
      name: text('general.name'),
      architecture: text('general.architecture'),
      contextLength: modelSeqLen,
      vocabSize,
      chatTemplate: text('chat.template'),
      beginToken: begin === undefined ? undefined : token(begin),
      endTokens: Array.from(this.#session.endTokens(), token),
    };
  }

  memoryMap(): MemoryRegion[] {
    return this.#session.memoryMap().map(({ region, bytes }) => ({ region, name: regionNames[region], bytes }));
  }

  #metadata(key: string): string {
    const name = this.#encoder.encode(key);
    this.#stage([name]);
    return this.#session.metadata(name.length);
  }

  #hold({ thought, calls }: Hold = { thought: undefined, calls: undefined }): void {
    const name = this.#encoder.encode(calls?.only ?? '');
    this.#stage([name]);
    check(this.#session.hold(thought ?? UNLIMITED, calls !== undefined, calls?.required ?? false, name.length));
  }

  /** Makes a conversation's text, and for a sequence also its tokens, which answer() of it then takes. */
  #converse(chat: ChatRequest, sequence?: number): void {
    const parts = [chat.template, chat.values, chat.more].map((text) => this.#encoder.encode(text));
    this.#stage(parts);
    const [template = 0, values = 0, more = 0] = parts.map(({ length }) => length);
    check(this.#session.converse(sequence, template, values, more, localTime()));
  }

  #withRest(rest: string, prompt: string | Uint32Array): string | Uint32Array {
    if (typeof prompt === 'string') return rest + prompt;
    return Uint32Array.from([...this.tokenize(rest, false), ...prompt]);
  }

  /** Returns a text's bytes and their number, or the bytes of ids and the number of ids. */
  #body(text: string | Uint32Array): { body: Uint8Array; size: number; tokens: number } {
    if (typeof text !== 'string') {
      const body = new Uint8Array(text.buffer, text.byteOffset, text.byteLength);
      return { body, size: 0, tokens: text.length };
    }
    const body = this.#encoder.encode(text);
    return { body, size: body.length, tokens: 0 };
  }

  #setLists({ biases, samplers, breakers }: SamplingLists, sequence: number): void {
    const ids = new Uint32Array(2 * biases.length);
    const values = new Float32Array(ids.buffer);
    for (const [i, [id, bias]] of biases.entries()) {
      ids[2 * i] = id;
      values[2 * i + 1] = bias;
    }
    const [names, texts] = [this.#texts(samplers ?? []), this.#texts(breakers ?? [])];
    this.#stage([new Uint8Array(ids.buffer), names, texts]);
    const [namesSize, textsSize] = [samplers && names.length, breakers && texts.length];
    check(this.#session.sampling(sequence, biases.length, namesSize, textsSize));
  }

  /** Returns the bytes of texts, each with a zero byte at its end. */
  #texts(texts: readonly string[]): Uint8Array {
    return this.#encoder.encode(texts.map((text) => `${text}\0`).join(''));
  }

  /** Puts parts one after the other where the next call reads them, with room for more bytes. */
  #stage(parts: readonly Uint8Array[], room = 0): void {
    const size = parts.reduce((sum, { length }) => sum + length, room);
    const into = this.#session.stage(size);
    if (!into) throw new QSFError('bad_argument', `${size} bytes of text are more than one call takes`);
    let at = 0;
    for (const part of parts) {
      into.set(part, at);
      at += part.length;
    }
  }
}

export const isChat = (prompt: GenerateRequest['prompt']): prompt is ChatRequest =>
  typeof prompt === 'object' && 'values' in prompt && typeof prompt.values === 'string';

function localTime(): LocalTime {
  const now = new Date();
  return {
    year: now.getFullYear(),
    month: now.getMonth() + 1,
    day: now.getDate(),
    hour: now.getHours(),
    minute: now.getMinutes(),
    second: now.getSeconds(),
  };
}

const errorOf = ({ code, sentence }: Failure): QSFError => new QSFError(errorName(code), sentence);

/** Returns a copy of bytes in the module's memory. */
function copied(bytes: Uint8Array | Failure): Uint8Array<ArrayBuffer> {
  if ('code' in bytes) throw errorOf(bytes);
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Returns a flag, or throws the failure. */
function got(flag: boolean | Failure): boolean {
  if (typeof flag === 'object') throw errorOf(flag);
  return flag;
}

function check(failure: Failure | undefined): void {
  if (failure) throw errorOf(failure);
}
