// One engine for all tabs of an origin that open the same model with the same request. The tab that holds a Web Lock
// runs it, and the others send it calls over a BroadcastChannel. When that tab is closed, the next one in the lock's
// queue opens the model again from the cache. Every document of the origin sees the names of locks, so these are
// digests of the request, whose headers may be secret. The channel's name is another digest of it, so that only a tab
// with the same request and headers finds the channel.
import { remoteEngine, reply } from '../contract.js';
import type { Batch, Call, LoadRequest, Method, RemoteEngine, Reply } from '../contract.js';
import { digestOf } from '../digest.js';
import { QSFError, errorInfo } from '../errors.js';
import { ownWorker } from './host.js';
import type { Host } from './host.js';
import { keepsModels } from '../platform.js';
import type { Progress } from '../progress-types.js';

/** Calls that a tab may make of another tab's engine. */
const METHODS: readonly Method[] = [
  'load',
  'start',
  'next',
  'embed',
  'stop',
  'rewind',
  'save',
  'restore',
  'stats',
  'trace',
  'render',
  'tokenize',
  'detokenize',
  'info',
];
/** Calls that take a sequence. */
const BEGIN: readonly Method[] = ['start', 'embed', 'rewind', 'save', 'restore'];
/** Calls about one that has begun. */
const LATER: readonly Method[] = ['next', 'stop'];
type Answer = Reply<unknown>;

/** Messages between tabs. */
type Message =
  | { kind: 'hello'; leader: string }
  | { kind: 'call'; from: string; n: number; method: Method; args: unknown[] }
  | { kind: 'taken'; to: string; n: number; leader: string }
  | { kind: 'answer'; to: string; n: number; answer: Answer }
  | { kind: 'progress'; to: string; progress: Progress }
  | { kind: 'warning'; to: string; warning: string };

interface Pending {
  message: Extract<Message, { kind: 'call' }>;
  /** The tab that took the call. An untaken call is sent again to the next leader. */
  leader: string | undefined;
  resolve(answer: Answer): void;
}

/** Whether this browser can share an engine for this request. */
export const canShare = ({ source, draft, wasm }: LoadRequest): boolean =>
  keepsModels &&
  typeof source === 'string' &&
  (draft === undefined || typeof draft === 'string') &&
  !(wasm instanceof Uint8Array) &&
  'BroadcastChannel' in globalThis &&
  globalThis.origin !== 'null' && // as in a sandboxed frame, which may have no locks
  globalThis.navigator?.locks !== undefined;

const lost = (): Answer => ({
  ok: false,
  error: errorInfo(new QSFError('cancelled', 'the tab that computed for this one was closed; ask again')),
});

const lostGeneration = (): Answer => ({
  ok: false,
  error: errorInfo(new QSFError('cancelled', 'the tab that computed this generation was closed; ask again')),
});

/** Returns the engine of all tabs with this request. */
export async function sharedEngine(request: LoadRequest, workerUrl: string | undefined): Promise<Host> {
  const text = JSON.stringify(request);
  const [lock, channel] = await Promise.all(['lock', 'channel'].map((use) => digestOf(`${use} ${text}`)));
  const tab = new Tab(request, workerUrl, `qsf:engine:${lock!}`, `qsf:engine:${channel!}`);
  const remote = remoteEngine((method, args) => tab.ask(method, args), {
    load: (_, report, warn) => tab.load(report, warn),
    close: () => tab.close(),
  });
  return { remote, failed: tab.failed, end: () => tab.end() };
}

class Tab {
  readonly failed: Promise<never>;
  #fail!: (error: unknown) => void;
  readonly #id = crypto.randomUUID();
  readonly #request: LoadRequest;
  readonly #workerUrl: string | undefined;
  readonly #channel: BroadcastChannel;
  readonly #leaving = new AbortController();
  /** Resolves once this tab holds its own lock, which shows the others that it exists. */
  readonly #here: Promise<void>;
  readonly #pending = new Map<number, Pending>();
  #calls = 0;
  #report: (progress: Progress) => void = () => {};
  #warn: (warning: string) => void = () => {};
  /** Set while this tab leads. */
  #leading: Leader | undefined;

  constructor(request: LoadRequest, workerUrl: string | undefined, lock: string, channel: string) {
    this.#request = request;
    this.#workerUrl = workerUrl;
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => {});
    this.#channel = new BroadcastChannel(channel);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => this.#hear(data);
    const signal = this.#leaving.signal;
    // Held for this tab's lifetime, so that the leader notices its end.
    this.#here = new Promise((held) => {
      const hold = () => {
        held();
        return ended(signal);
      };
      navigator.locks.request(tabLock(this.#id), hold).catch((error: unknown) => this.#fail(error));
    });
    navigator.locks.request(lock, { signal }, () => this.#lead()).catch(() => {});
  }

  async load(report: (progress: Progress) => void, warn: (warning: string) => void): ReturnType<RemoteEngine['load']> {
    [this.#report, this.#warn] = [report, warn];
    return (await this.ask('load', [])) as Awaited<ReturnType<RemoteEngine['load']>>;
  }

  async ask(method: Method, args: unknown[]): Promise<Answer> {
    await this.#here;
    const message = { kind: 'call', from: this.#id, n: ++this.#calls, method, args } as const;
    return new Promise((resolve) => {
      this.#pending.set(message.n, { message, leader: undefined, resolve });
      this.#say(message);
    });
  }

  async close(): Promise<{ ok: true; value: undefined }> {
    await this.#leading?.close();
    this.end();
    return { ok: true, value: undefined };
  }

  /** Lets the next tab lead at once. */
  end(): void {
    if (this.#leaving.signal.aborted) return;
    this.#leading?.end();
    this.#leaving.abort();
    this.#channel.close();
  }

  /** Sends a message to the other tabs and to this one. */
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

  /** Reacts to a new leader. Calls that the previous one had taken are lost, except load(), which is sent again. */
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
    host.failed.catch((error: unknown) => {
      this.#fail(error);
      this.end();
    });
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
  /** The tabs of the calls that take a sequence, by the ids of the calls. */
  readonly #tabs = new Map<string, string>();
  readonly #known = new Set<string>();
  /** Closed tabs; their later messages are ignored. */
  readonly #gone = new Set<string>();
  readonly #taken = new Set<string>();
  /** Takes no further calls and answers none: the next leader does. */
  #isClosing = false;

  constructor(id: string, host: Host, request: LoadRequest, say: (message: Message) => void) {
    this.#id = id;
    this.#host = host;
    this.#say = say;
    const load = this.#host.remote.load(
      request,
      (progress) => this.#known.forEach((to) => say({ kind: 'progress', to, progress })),
      (warning) => this.#known.forEach((to) => say({ kind: 'warning', to, warning })),
    );
    this.#loaded = load.catch((error: unknown) => ({ ok: false, error: errorInfo(error) }));
  }

  take(call: Extract<Message, { kind: 'call' }>): void {
    const { from, n, method } = call;
    const name = `${from} ${String(n)}`;
    if (this.#isClosing || this.#gone.has(from) || this.#taken.has(name) || !METHODS.includes(method)) return;
    this.#taken.add(name);
    this.#watch(from);
    this.#say({ kind: 'taken', to: from, n, leader: this.#id });
    void this.#answer(call).then((answer) => {
      this.#taken.delete(name);
      if (!this.#isClosing) this.#say({ kind: 'answer', to: from, n, answer });
    });
  }

  /** Releases the model's files first, if that does not take long. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.race([this.#host.remote.close(), this.#host.failed]).catch(() => {});
  }

  end(): void {
    this.#isClosing = true;
    this.#host.end();
  }

  async #answer({ from, method, args }: Extract<Message, { kind: 'call' }>): Promise<Answer> {
    const loaded = await this.#loaded;
    if (method === 'load' || !loaded.ok) return loaded;
    if (this.#gone.has(from)) return lost();
    const ask = this.#host.remote[method] as (...args: unknown[]) => Promise<Answer>;
    const id = idOf(method, args);
    if (id === undefined) return flat(await reply(() => ask(...args)));
    if (BEGIN.includes(method)) this.#tabs.set(id, from);
    else if (this.#tabs.get(id) !== from) return method === 'stop' ? { ok: true, value: undefined } : lostGeneration();
    const answer = flat(await reply(() => ask(...args)));
    const goesOn = method === 'start' || (method === 'next' && answer.ok && !(answer.value as Batch).result);
    if (!goesOn || !answer.ok) this.#tabs.delete(id);
    return answer;
  }

  /** Ends a tab's calls when the tab is closed, also those that wait. */
  #watch(tab: string): void {
    if (this.#known.has(tab)) return;
    this.#known.add(tab);
    if (tab === this.#id) return;
    void navigator.locks.request(tabLock(tab), async () => {
      this.#known.delete(tab);
      this.#gone.add(tab);
      for (const [id, owner] of [...this.#tabs]) {
        if (owner !== tab) continue;
        this.#tabs.delete(id);
        await this.#host.remote.stop(id);
      }
    });
  }
}

/** Returns the id of the call that takes a sequence, if the method is about one. */
function idOf(method: Method, [first]: unknown[]): string | undefined {
  if (LATER.includes(method)) return String(first);
  return BEGIN.includes(method) ? String((first as Partial<Call> | undefined)?.id) : undefined;
}

const flat = (reply: Reply<Answer>): Answer => (reply.ok ? reply.value : reply);

const tabLock = (id: string) => `qsf:tab:${id}`;

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
