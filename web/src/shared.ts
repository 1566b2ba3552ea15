// One engine for all tabs of an origin that open the same model in the same way. The tab that holds a Web Lock runs it; the
// others ask over a BroadcastChannel. When it is closed, the next in the lock's queue opens the model anew, from the cache.
import type { LoadRequest } from './contract.js';
import { reply } from './contract.js';
import { QSFError, errorInfo } from './errors.js';
import { ownWorker } from './host.js';
import type { Host, RemoteEngine } from './host.js';
import { keepsModels } from './platform.js';
import { Turns } from './turns.js';
import type { Progress } from './types.js';

type Method = keyof RemoteEngine;
type Answer = { ok: true; value: unknown } | { ok: false; error: ReturnType<typeof errorInfo> };

/** What tabs say to each other. */
type Message =
  | { kind: 'hello'; leader: string }
  | { kind: 'call'; from: string; n: number; method: Method; args: unknown[] }
  | { kind: 'taken'; to: string; n: number; leader: string }
  | { kind: 'answer'; to: string; n: number; answer: Answer }
  | { kind: 'progress'; to: string; progress: Progress }
  | { kind: 'warning'; to: string; warning: string };

interface Pending {
  message: Extract<Message, { kind: 'call' }>;
  /** Who has it; a call that nobody took is made again when somebody leads. */
  leader: string | undefined;
  resolve(answer: Answer): void;
}

/** Whether this browser, and this request, can have a shared engine. */
export const canShare = ({ source, wasm }: LoadRequest): boolean =>
  keepsModels &&
  typeof source === 'string' &&
  !(wasm instanceof Uint8Array) &&
  'BroadcastChannel' in globalThis &&
  globalThis.navigator?.locks !== undefined;

const lost = (): Answer => ({
  ok: false,
  error: errorInfo(new QSFError('cancelled', 'The tab that computed for this one was closed; ask again.')),
});

/** The engine of all tabs with this request. */
export function sharedEngine(request: LoadRequest, workerUrl: string | undefined): Host {
  const tab = new Tab(request, workerUrl);
  const ask =
    (method: Method) =>
    (...args: unknown[]) =>
      tab.ask(method, args);
  const methods = ['start', 'next', 'embed', 'stop', 'stats', 'trace', 'tokenize', 'detokenize'] as const;
  const remote = {
    ...Object.fromEntries(methods.map((method) => [method, ask(method)])),
    load: (_: LoadRequest, report: (progress: Progress) => void, warn: (warning: string) => void) =>
      tab.load(report, warn),
    close: () => tab.close(),
  } as unknown as RemoteEngine;
  return { remote, failed: tab.failed, end: () => void tab.close() };
}

class Tab {
  readonly failed: Promise<never>;
  #fail!: (error: unknown) => void;
  readonly #id = crypto.randomUUID();
  readonly #request: LoadRequest;
  readonly #workerUrl: string | undefined;
  readonly #name: string;
  readonly #channel: BroadcastChannel;
  readonly #leaving = new AbortController();
  readonly #pending = new Map<number, Pending>();
  #calls = 0;
  #report: (progress: Progress) => void = () => {};
  #warn: (warning: string) => void = () => {};
  /** Where this tab leads. */
  #leading: Leader | undefined;

  constructor(request: LoadRequest, workerUrl: string | undefined) {
    this.#request = request;
    this.#workerUrl = workerUrl;
    this.#name = `qsf:engine:${JSON.stringify(request)}`;
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => {});
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => this.#hear(data);
    const signal = this.#leaving.signal;
    // Held as long as this tab is here, so that who leads hears of its end.
    void navigator.locks.request(tabLock(this.#id), () => ended(signal));
    navigator.locks.request(this.#name, { signal }, () => this.#lead()).catch(() => {});
  }

  async load(report: (progress: Progress) => void, warn: (warning: string) => void): ReturnType<RemoteEngine['load']> {
    [this.#report, this.#warn] = [report, warn];
    return (await this.ask('load', [])) as Awaited<ReturnType<RemoteEngine['load']>>;
  }

  ask(method: Method, args: unknown[]): Promise<Answer> {
    const message = { kind: 'call', from: this.#id, n: ++this.#calls, method, args } as const;
    return new Promise((resolve) => {
      this.#pending.set(message.n, { message, leader: undefined, resolve });
      this.#say(message);
    });
  }

  async close(): Promise<{ ok: true; value: undefined }> {
    if (!this.#leaving.signal.aborted) {
      await this.#leading?.close();
      this.#leaving.abort();
      this.#channel.close();
    }
    return { ok: true, value: undefined };
  }

  /** To the others, and to itself. */
  #say(message: Message): void {
    if (this.#leaving.signal.aborted) return;
    this.#channel.postMessage(message);
    this.#hear(message);
  }

  #hear(message: Message): void {
    if (message.kind === 'call') return this.#leading?.take(message);
    if (message.kind === 'hello') return this.#meet(message.leader);
    if (message.to !== this.#id) return;
    if (message.kind === 'progress') return this.#report(message.progress);
    if (message.kind === 'warning') return this.#warn(message.warning);
    const pending = this.#pending.get(message.n);
    if (message.kind === 'taken') {
      if (pending) pending.leader = message.leader;
      return;
    }
    this.#pending.delete(message.n);
    pending?.resolve(message.answer);
  }

  /** Somebody leads from now on: what the last one had is lost, but for a load(), which is as good with the new one. */
  #meet(leader: string): void {
    for (const [n, { message, leader: had, resolve }] of [...this.#pending]) {
      if (had === leader) continue;
      if (had === undefined || message.method === 'load') {
        this.#channel.postMessage(message);
        this.#leading?.take(message);
      } else {
        this.#pending.delete(n);
        resolve(lost());
      }
    }
  }

  async #lead(): Promise<void> {
    const host = await ownWorker(this.#workerUrl).catch((error: unknown) => this.#fail(error));
    if (!host) return;
    if (this.#leaving.signal.aborted) return host.end();
    this.#leading = new Leader(this.#id, host, this.#request, (message) => this.#say(message));
    host.failed.catch((error: unknown) => this.#fail(error));
    this.#say({ kind: 'hello', leader: this.#id });
    return ended(this.#leaving.signal);
  }
}

/** The tab that computes, for itself and the others. */
class Leader {
  readonly #id: string;
  readonly #host: Host;
  readonly #say: (message: Message) => void;
  readonly #loaded: ReturnType<RemoteEngine['load']>;
  readonly #turns = new Turns();
  readonly #known = new Set<string>();
  readonly #taken = new Set<string>();

  constructor(id: string, host: Host, request: LoadRequest, say: (message: Message) => void) {
    this.#id = id;
    this.#host = host;
    this.#say = say;
    this.#loaded = this.#host.remote.load(
      request,
      (progress) => this.#known.forEach((to) => say({ kind: 'progress', to, progress })),
      (warning) => this.#known.forEach((to) => say({ kind: 'warning', to, warning })),
    );
  }

  take(call: Extract<Message, { kind: 'call' }>): void {
    const { from, n } = call;
    if (this.#taken.has(`${from} ${String(n)}`)) return;
    this.#taken.add(`${from} ${String(n)}`);
    this.#meet(from);
    this.#say({ kind: 'taken', to: from, n, leader: this.#id });
    void this.#answer(call).then((answer) => {
      this.#taken.delete(`${from} ${String(n)}`);
      this.#say({ kind: 'answer', to: from, n, answer });
    });
  }

  async close(): Promise<void> {
    await this.#host.remote.close().catch(() => {});
    this.#host.end();
  }

  async #answer({ from, method, args }: Extract<Message, { kind: 'call' }>): Promise<Answer> {
    const loaded = await this.#loaded;
    if (method === 'load' || !loaded.ok) return loaded;
    const ask = this.#host.remote[method] as (...args: unknown[]) => Promise<Answer>;
    const result = await reply(async () => {
      if (method === 'start' || method === 'embed') await this.#turns.take(from, startsAnew(method, args));
      else if (method === 'next') this.#turns.check(from);
      else if (method === 'stop' && !this.#turns.owns(from)) return { ok: true, value: undefined } as const;
      return ask(...args);
    });
    const answer: Answer = result.ok ? result.value : result;
    const { result: end } = (answer.ok ? (answer.value ?? {}) : {}) as { result?: unknown };
    const isOver = method === 'embed' || method === 'stop' || end !== undefined;
    if (isOver || ((method === 'start' || method === 'next') && !answer.ok)) this.#turns.give(from);
    return answer;
  }

  /** A tab that is gone leaves its turn. */
  #meet(tab: string): void {
    if (this.#known.has(tab)) return;
    this.#known.add(tab);
    if (tab === this.#id) return;
    void navigator.locks.request(tabLock(tab), async () => {
      this.#known.delete(tab);
      if (this.#turns.owns(tab)) await this.#host.remote.stop();
      this.#turns.give(tab);
    });
  }
}

const startsAnew = (method: Method, args: unknown[]): boolean =>
  method === 'embed' || (args[0] as { continue?: boolean }).continue !== true;

const tabLock = (id: string) => `qsf:tab:${id}`;

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
