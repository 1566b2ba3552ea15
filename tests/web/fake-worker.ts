// A worker that runs what a test says in this thread, behind messages as a real one is.
import * as Comlink from 'comlink';
import { vi } from 'vitest';

import type { AnswerPiece } from '../../web/src/boundary.gen.js';
import type {
  Batch,
  Call,
  ChatRequest,
  EmbedRequest,
  EngineWorker,
  GenerateRequest,
  LoadRequest,
  Reply,
  SaveRequest,
} from '../../web/src/contract.js';
import type { Progress } from '../../web/src/progress-types.js';
import type { GenerationResult, Restored, Stats } from '../../web/src/types.js';

const done: Reply<void> = { ok: true, value: undefined };

/** What a generation ends with. */
export const result: GenerationResult = {
  end: 'length',
  promptTokens: 2,
  reusedTokens: 0,
  tokens: [1, 2],
  position: 4,
  sequence: 0,
  seed: 7,
};

/** The worker's side: each call is noted, and answered as its member of `answers` says. */
export class Backend {
  readonly calls: string[] = [];
  loads: LoadRequest[] = [];
  starts: GenerateRequest[] = [];
  embeds: EmbedRequest[] = [];
  saves: SaveRequest[] = [];
  restores: (Blob | string)[] = [];
  batches: Batch[] = [];
  /** The calls that take a sequence, and the ids of those that were stopped. */
  readonly taken: Call[] = [];
  readonly stopped: string[] = [];
  /** What each stop() and each rewind() was given. */
  readonly shown: (number | undefined)[] = [];
  readonly rewound: number[] = [];
  /** Whether the worker tells that the model is kept. */
  kept = false;
  answers = {
    load: async (_report: (progress: Progress) => void, _warn: (warning: string) => void): Promise<Reply<boolean>> => ({
      ok: true,
      value: this.kept,
    }),
    start: async (): Promise<Reply<void>> => done,
    next: async (): Promise<Reply<Batch>> => ({ ok: true, value: this.batches.shift()! }),
    embed: async ({ texts }: EmbedRequest): Promise<Reply<Float32Array[]>> => ({
      ok: true,
      value: texts.map((text) => Float32Array.of(text.length, 0.5)),
    }),
    stop: async (): Promise<Reply<GenerationResult | undefined>> => ({
      ok: true,
      value: { ...result, end: 'cancelled' },
    }),
    rewind: async (): Promise<Reply<void>> => done,
    save: async (): Promise<Reply<Blob>> => ({ ok: true, value: new Blob(['saved']) }),
    restore: async (): Promise<Reply<Restored>> => ({ ok: true, value: { position: 3, sequence: 0 } }),
    close: async (): Promise<Reply<void>> => done,
    render: async ({ values }: ChatRequest): Promise<Reply<string>> => ({ ok: true, value: values }),
    stats: async (): Promise<Reply<Stats>> => ({ ok: true, value: { position: 5 } as Stats }),
  };

  /** Pieces in batches; the last one ends the generation. */
  will(...batches: string[][]): void {
    this.batches = batches.map((pieces, i) => (i === batches.length - 1 ? { pieces, result } : { pieces }));
  }

  /** The parts of an answer, each with a piece of its own; the last one ends it. */
  willAnswer(...parts: AnswerPiece[]): void {
    this.batches = [...parts.map((part) => ({ pieces: [part.text], parts: [[part]] })), { pieces: [], result }];
  }

  get exposed(): Record<keyof EngineWorker, unknown> {
    const noted =
      <A extends unknown[], T>(name: keyof EngineWorker, answer: (...args: A) => T) =>
      (...args: A): T => {
        this.calls.push(name);
        return answer(...args);
      };
    return {
      load: noted(
        'load',
        (request: LoadRequest, report: (progress: Progress) => void, warn: (warning: string) => void) => {
          this.loads.push(request);
          return this.answers.load(report, warn);
        },
      ),
      start: noted('start', (call: Call, request: GenerateRequest) => {
        this.taken.push(call);
        this.starts.push(request);
        return this.answers.start();
      }),
      next: noted('next', async () => withParts(await this.answers.next())),
      embed: noted('embed', (call: Call, request: EmbedRequest) => {
        this.taken.push(call);
        this.embeds.push(request);
        return this.answers.embed(request);
      }),
      stop: noted('stop', (id: string, shown?: number) => {
        this.stopped.push(id);
        this.shown.push(shown);
        return this.answers.stop();
      }),
      rewind: noted('rewind', (call: Call, position: number) => {
        this.taken.push(call);
        this.rewound.push(position);
        return this.answers.rewind();
      }),
      save: noted('save', (call: Call, request: SaveRequest) => {
        this.taken.push(call);
        this.saves.push(request);
        return this.answers.save();
      }),
      restore: noted('restore', (call: Call, from: Blob | string) => {
        this.taken.push(call);
        this.restores.push(from);
        return this.answers.restore();
      }),
      trace: noted('trace', () => ({ ok: true, value: { now: 1, spans: [] } })),
      stats: noted('stats', () => this.answers.stats()),
      render: noted('render', (chat: ChatRequest) => this.answers.render(chat)),
      tokenize: noted('tokenize', (text: string) => ({
        ok: true,
        value: Uint32Array.from(text, (c) => c.charCodeAt(0)),
      })),
      detokenize: noted('detokenize', (ids: Uint32Array, special: boolean) => ({
        ok: true,
        value: String.fromCharCode(...ids) + (special ? '!' : ''),
      })),
      info: noted('info', () => ({ ok: true, value: { name: 'Small' } })),
      close: noted('close', () => this.answers.close()),
    };
  }
}

/** Returns a batch whose pieces are text for the user, if it has no parts. */
function withParts(reply: Reply<Batch>): Reply<Batch> {
  if (!reply.ok) return reply;
  const parts = reply.value.pieces.map((text): AnswerPiece[] => [{ kind: 'text', text }]);
  return { ok: true, value: { parts, ...reply.value } };
}

export class FakeWorker extends EventTarget {
  static made: FakeWorker[] = [];
  static backend: Backend;
  terminated = false;
  /** What its messages took with them. */
  readonly transferred: Transferable[] = [];
  readonly #channel = new MessageChannel();

  constructor() {
    super();
    FakeWorker.made.push(this);
    this.#channel.port1.onmessage = ({ data }: MessageEvent) => {
      this.dispatchEvent(new MessageEvent('message', { data: data as unknown }));
    };
    Comlink.expose(FakeWorker.backend.exposed, this.#channel.port2);
    queueMicrotask(() => this.dispatchEvent(new MessageEvent('message', { data: 'listening' })));
  }

  postMessage(message: unknown, transfer: Transferable[] = []): void {
    this.transferred.push(...transfer);
    if (!this.terminated) this.#channel.port1.postMessage(message, transfer);
  }

  /** What the browser does when the worker's script fails. */
  break(message: string): void {
    this.dispatchEvent(Object.assign(new Event('error'), { message }));
  }

  terminate(): void {
    this.terminated = true;
    this.#channel.port1.close();
  }
}

/** Puts the fake where a page has workers and an address; gives what is behind it. */
export function installFakeWorker(): Backend {
  FakeWorker.made = [];
  FakeWorker.backend = new Backend();
  vi.stubGlobal('Worker', FakeWorker);
  vi.stubGlobal('location', new URL('https://page.test/demo/'));
  return FakeWorker.backend;
}

/** Ends what installFakeWorker() made. */
export function removeFakeWorker(): void {
  for (const worker of FakeWorker.made) worker.terminate();
  vi.unstubAllGlobals();
}

/** A reply that tells of an error. */
export const failure = (code: string, sentence: string) =>
  ({ ok: false, error: { code, sentence } }) as Extract<Reply<never>, { ok: false }>;

/** A promise that a test settles. */
export function open<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
