// One engine for several tabs: here they are of one thread, each with its locks and its channel.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Batch, Call, Reply } from '../../web/src/contract.js';
import type { Host } from '../../web/src/page/host.js';
import { QSF } from '../../web/src/page/qsf.js';
import { generateRequest, loadRequest } from '../../web/src/page/requests.js';
import { sharedEngine } from '../../web/src/page/shared.js';
import type { Progress } from '../../web/src/progress-types.js';
import type { GenerationResult, LoadOptions, Stats } from '../../web/src/types.js';
import { stays, until } from './fake-engine.js';
import { FakeLocks } from './fake-locks.js';
import type { FakeLock } from './fake-locks.js';
import { FakeWorker, failure, installFakeWorker, open, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://models.test/private.qsf';
const done: Reply<void> = { ok: true, value: undefined };

let backend: Backend;
let locks: FakeLocks;
let channels: BroadcastChannel[];
beforeEach(() => {
  backend = installFakeWorker();
  locks = new FakeLocks();
  channels = [];
  vi.stubGlobal('navigator', { locks });
  const Real = BroadcastChannel;
  vi.stubGlobal(
    'BroadcastChannel',
    class extends Real {
      constructor(name: string) {
        super(name);
        channels.push(this);
      }
    },
  );
});
afterEach(() => {
  for (const channel of channels) channel.close();
  removeFakeWorker();
});

class Tab {
  readonly #host: Host;
  readonly #locks: FakeLock[];
  readonly #channel: BroadcastChannel;
  #calls = 0;
  id = '';

  constructor(host: Host, its: FakeLock[], channel: BroadcastChannel) {
    this.#host = host;
    this.#locks = its;
    this.#channel = channel;
    host.failed.catch(() => undefined);
  }

  get names(): string[] {
    return [...this.#locks.map(({ name }) => name), this.#channel.name];
  }

  load(report = (_: Progress): void => undefined, warn = (_: string): void => undefined): Promise<Reply<boolean>> {
    return this.#host.remote.load(undefined as never, report, warn);
  }
  /** Returns a further call of this tab. Its id is that of next() and stop(). */
  call(): Call {
    const caller = this.names[0]!;
    this.id = `${caller} ${String(++this.#calls)}`;
    return { id: this.id, caller };
  }
  start(): Promise<Reply<void>> {
    return this.#host.remote.start(this.call(), generateRequest('Once', {}));
  }
  next(): Promise<Reply<Batch>> {
    return this.#host.remote.next(this.id);
  }
  stop(shown?: number, id = this.id): Promise<Reply<GenerationResult | undefined>> {
    return this.#host.remote.stop(id, shown);
  }
  get remote() {
    return this.#host.remote;
  }
  get failed() {
    return this.#host.failed;
  }
  end(): void {
    this.#host.end();
  }

  /** What a browser does when the tab is closed: it asks nobody. */
  kill(): void {
    this.#channel.close();
    for (const lock of this.#locks) if (lock.state !== 'is over') lock.end();
  }
}

async function openTab(options: LoadOptions = {}, url = URL_): Promise<Tab> {
  const first = locks.asked.length;
  const host = await sharedEngine(await loadRequest(url, options), undefined);
  return new Tab(host, locks.asked.slice(first, first + 2), channels.at(-1)!);
}

async function loaded(): Promise<Tab> {
  const tab = await openTab();
  expect(await tab.load()).toEqual({ ok: true, value: false });
  return tab;
}

const count = (call: string) => backend.calls.filter((other) => other === call).length;

describe('what an origin sees of a shared engine', () => {
  const headers = { Authorization: 'Bearer s3cret' };

  it('tells neither the address nor a header, and not by the lock which channel it is', async () => {
    const tab = await openTab({ network: { headers } });
    const [tabLock, lock, channel] = tab.names;
    expect(tabLock).toMatch(/^qsf:tab:[\da-f-]{36}$/);
    for (const name of [lock, channel]) expect(name).toMatch(/^qsf:engine:[\da-f]{32}$/);
    expect(lock).not.toBe(channel);
  });

  it('is one for the same request, however it is written, and another without its token', async () => {
    const [, , ...channelsOf] = await Promise.all(
      [
        {},
        { cache: false },
        { network: { headers, retries: 3 } },
        { network: { retries: 3, headers: new Headers(headers) } },
        { network: { retries: 3, headers: [['authorization', 'Bearer s3cret']] } as LoadOptions['network'] },
        { network: { retries: 3 } },
        { network: { headers: { Authorization: 'Bearer other' }, retries: 3 } },
      ].map(async (options) => (await openTab(options as LoadOptions)).names[2]!),
    );
    const [record, object, list, none, other] = channelsOf;
    expect([object, list]).toEqual([record, record]);
    expect(new Set([record, none, other]).size).toBe(3);
  });

  it('answers what is in its list, and nothing else', async () => {
    const tab = await loaded();
    const stranger = new BroadcastChannel(tab.names[2]!);
    const before = backend.calls.length;
    for (const method of ['close', 'constructor', '__proto__', 'tokenise'])
      stranger.postMessage({ kind: 'call', from: 'x', n: 1, method, args: [] });
    stranger.postMessage({ kind: 'call', from: 'x', n: 2, method: 'stats', args: [] });
    await until(() => backend.calls.length > before);
    await stays(() => backend.calls.length === before + 1);
    expect(backend.calls.slice(before)).toEqual(['stats']);
  });
});

describe('what tabs say to each other', () => {
  it('reaches the one that it is for: its own answers, and all how far the model is', async () => {
    const loading = open<Reply<boolean>>();
    const progress: Progress = { phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 };
    let tell!: () => void;
    backend.answers.load = (report, warn) => {
      tell = () => {
        report(progress);
        warn('No room.');
      };
      return loading.promise;
    };
    const tabs = [await openTab(), await openTab(), await openTab()];
    const seen = tabs.map((): unknown[] => []);
    const loads = tabs.map((tab, i) =>
      tab.load(...([0, 1].map(() => (it: unknown) => seen[i]!.push(it)) as [never, never])),
    );
    await until(() => count('load') === 1);
    await stays(() => true);
    tell();
    await until(() => seen.every((its) => its.length === 2));
    expect(seen).toEqual(tabs.map(() => [progress, 'No room.']));
    loading.resolve({ ok: true, value: false });
    expect(await Promise.all(loads)).toEqual(tabs.map(() => ({ ok: true, value: false })));
    // The calls of all have the same number.
    const lengths = tabs.map(async (tab, i) => {
      const tokens = await tab.remote.tokenize('abc'.slice(i), true);
      return tokens.ok && tokens.value.length;
    });
    expect(await Promise.all(lengths)).toEqual([3, 2, 1]);
  });

  it('is done once though it is said twice, as a call is that was under way when somebody began to lead', async () => {
    const tab = await loaded();
    const stranger = new BroadcastChannel(tab.names[2]!);
    channels.push(stranger);
    const heard: { kind: string; leader: string }[] = [];
    stranger.onmessage = ({ data }: MessageEvent<(typeof heard)[number]>) => heard.push(data);
    const stats = open<Reply<Stats>>();
    backend.answers.stats = () => stats.promise;
    for (let i = 0; i < 2; i++) stranger.postMessage({ kind: 'call', from: 'x', n: 1, method: 'stats', args: [] });
    await until(() => count('stats') > 0);
    await stays(() => count('stats') === 1);
    stats.resolve({ ok: true, value: { position: 5 } as Stats });
    // And a greeting of who has a call already does not end it.
    const other = await loaded();
    const held = open<Reply<void>>();
    backend.answers.start = () => held.promise;
    const starting = other.start();
    await until(() => count('start') === 1);
    const { leader } = heard.filter(({ kind }) => kind === 'taken').at(-1)!;
    stranger.postMessage({ kind: 'hello', leader });
    await stays(() => count('start') === 1);
    held.resolve(done);
    expect(await starting).toEqual(done);
  });
});

describe('a tab that is gone', () => {
  it('during its generation has it stopped, and the next one is let in', async () => {
    const [first, second, third] = [await loaded(), await loaded(), await loaded()];
    expect(await second.start()).toEqual(done);
    backend.answers.next = () => new Promise(() => undefined);
    void second.next();
    await until(() => backend.calls.includes('next'));
    second.kill();
    await until(() => backend.calls.includes('stop'));
    expect(await third.start()).toEqual(done);
    backend.answers.next = async () => ({ ok: true, value: { pieces: ['a'], result } });
    expect(await third.next()).toMatchObject({ value: { pieces: ['a'] } });
    expect(await first.start()).toEqual(done);
  });

  it('before its generation began has none made', async () => {
    const [first, second, third] = [await loaded(), await loaded(), await loaded()];
    // The next one to lead opens the model anew, and is asked meanwhile.
    const loading = open<Reply<boolean>>();
    backend.answers.load = () => loading.promise;
    first.kill();
    await until(() => count('load') === 2);
    void third.start();
    await until(() => locks.asked.some(({ name, state }) => name === third.names[0] && state === 'waits'));
    third.kill();
    await until(() => locks.asked.every(({ name, state }) => name !== third.names[0] || state === 'is over'));
    loading.resolve({ ok: true, value: false });
    await stays(() => count('start') === 0);
    expect(await second.start()).toEqual(done);
  });
});

describe('a tab that leads', () => {
  it('and closes while it loads leaves the load to the next one', async () => {
    const first = await openTab();
    const loading = open<Reply<boolean>>();
    backend.answers.load = () => loading.promise;
    void first.load();
    const second = await openTab();
    let reply: Reply<boolean> | undefined;
    void second.load().then((answer) => (reply = answer));
    await until(() => count('load') === 1);
    await stays(() => reply === undefined);
    backend.answers.load = async () => ({ ok: true, value: true });
    backend.answers.close = async () => {
      // As the worker does: what is under way ends first.
      loading.resolve(failure('cancelled', 'the source was closed'));
      await stays(() => reply === undefined);
      return done;
    };
    await first.remote.close();
    await until(() => reply !== undefined);
    expect(reply).toEqual({ ok: true, value: true });
    expect(count('load')).toBe(2);
  });

  it.each(['breaks', 'does not answer'] as const)('and whose worker %s makes way for the next one', async (how) => {
    const first = await openTab();
    backend.answers.load = () => new Promise(() => undefined);
    void first.load();
    const second = await openTab();
    const reply = second.load();
    await until(() => count('load') === 1);
    backend.answers.load = async () => ({ ok: true, value: true });
    backend.answers.close = () => new Promise(() => undefined);
    if (how === 'breaks') {
      FakeWorker.made[0]!.break('out of memory');
      await expect(first.failed).rejects.toMatchObject({ code: 'unsupported_host' });
    } else {
      void first.remote.close();
      await until(() => count('close') === 1);
      first.end();
    }
    expect(await reply).toEqual({ ok: true, value: true });
    expect(FakeWorker.made[0]!.terminated).toBe(true);
  });

  it('and closes takes nothing any more, which the next one does', async () => {
    const [first, second] = [await loaded(), await loaded()];
    const closing = open<Reply<void>>();
    backend.answers.close = () => closing.promise;
    const closed = first.remote.close();
    await until(() => count('close') === 1);
    const stats = second.remote.stats();
    await stays(() => count('stats') === 0);
    closing.resolve(done);
    await closed;
    expect(await stats).toEqual({ ok: true, value: { position: 5 } });
    expect(FakeWorker.made).toHaveLength(2);
  });

  it('and ends while its worker starts ends that too', async () => {
    const first = await openTab();
    vi.stubGlobal(
      'Worker',
      class extends FakeWorker {
        constructor() {
          super();
          first.end();
        }
      },
    );
    await until(() => FakeWorker.made.length === 1);
    await until(() => FakeWorker.made[0]!.terminated);
    vi.stubGlobal('Worker', FakeWorker);
    expect(count('load')).toBe(0);
    await loaded();
  });

  it('and is closed has what others began end, and what they ask afterwards answered', async () => {
    const [first, second] = [await loaded(), await loaded()];
    expect(await second.start()).toEqual(done);
    backend.answers.next = () => new Promise(() => undefined);
    const next = second.next();
    await until(() => backend.calls.includes('next'));
    await first.remote.close();
    expect(await next).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    expect(await second.start()).toEqual(done);
  });

  it('and is gone has the calls that it took told of, and not made again', async () => {
    const [first, second] = [await loaded(), await loaded()];
    backend.answers.stats = () => new Promise(() => undefined);
    const taken = second.remote.stats();
    await until(() => count('stats') === 1);
    await stays(() => true); // what the leader has said is heard
    first.kill();
    expect(await taken).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    expect(count('stats')).toBe(1);
  });
});

describe('calls of several tabs', () => {
  it('reach the worker as they come, each with its own id and caller', async () => {
    const [first, second] = [await loaded(), await loaded()];
    const held = open<Reply<void>>();
    backend.answers.start = () => held.promise;
    const starts = [first.start(), second.start()];
    await until(() => count('start') === 2);
    expect(await second.remote.rewind(second.call(), 2)).toEqual(done);
    const request = { messages: '', name: undefined };
    backend.answers.save = async () => ({ ok: true, value: 'a file' as unknown as Blob }); // Node's channels carry no Blobs
    expect(await first.remote.save(first.call(), request)).toMatchObject({ ok: true });
    expect(await second.remote.restore(second.call(), 'talk')).toMatchObject({ ok: true, value: { position: 3 } });
    held.resolve(done);
    expect(await Promise.all(starts)).toEqual([done, done]);
    const [a, b] = [first.names[0], second.names[0]];
    expect(backend.taken.map(({ caller }) => caller)).toEqual([a, b, b, a, b]);
  });

  it('are their tab’s to read and to stop', async () => {
    const [, second, third] = [await loaded(), await loaded(), await loaded()];
    expect(await second.start()).toEqual(done);
    expect(await third.stop(undefined, second.id)).toEqual(done);
    expect(await third.remote.next(second.id)).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    expect([count('stop'), count('next')]).toEqual([0, 0]);
    await second.stop(1);
    expect([backend.stopped, backend.shown]).toEqual([[second.id], [1]]);
    expect(await second.next()).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    // Whoever is over is forgotten.
    backend.answers.start = async () => failure('context_full', 'the prompt is too long.');
    expect(await second.start()).toMatchObject({ ok: false, error: { code: 'context_full' } });
    await second.stop();
    backend.answers.start = async () => done;
    backend.batches = [{ pieces: ['a'] }, { pieces: [], result }];
    await second.start();
    expect(await second.next()).toMatchObject({ ok: true, value: { pieces: ['a'] } });
    expect(await second.next()).toMatchObject({ ok: true, value: { result } });
    expect(await second.next()).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    expect(count('stop')).toBe(1);
  });

  it('end with it, also those that wait', async () => {
    const [, second, third] = [await loaded(), await loaded(), await loaded()];
    backend.answers.embed = () => new Promise(() => undefined);
    const texts = { texts: ['a'], addBos: true, special: true, pooling: undefined, normalize: undefined };
    void third.remote.embed(third.call(), texts);
    const embedding = third.id;
    await until(() => count('embed') === 1);
    backend.answers.start = () => new Promise(() => undefined);
    void third.start();
    void second.start();
    await until(() => count('start') === 2);
    third.kill();
    await until(() => count('stop') === 2);
    expect(backend.stopped).toEqual([embedding, third.id]);
  });
});

describe('models of a shared engine', () => {
  it("are awaited, and have OpenAI's shapes", async () => {
    const first = await QSF.load(URL_, { shared: true });
    const second = await QSF.load(URL_, { shared: true });
    expect(FakeWorker.made).toHaveLength(1);
    backend.answers.start = async () => {
      backend.will(['Hi'], ['!']);
      return done;
    };
    const messages = [{ role: 'user', content: 'Hello' }];
    const text = await first.chat('Hello');
    const { choices } = await second.chat.completions.create({ messages, stream: false });
    expect([text, choices[0]!.message.content]).toEqual(['Hi!', 'Hi!']);
    expect(backend.starts).toHaveLength(2);
    expect((await second.embeddings.create({ input: 'four' })).data[0]!.embedding).toEqual([4, 0.5]);
    await Promise.all([second.close(), first.close()]);
  });
});
