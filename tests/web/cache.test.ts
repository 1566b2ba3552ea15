import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { cache, makeRoom } from '../../web/src/page/cache.js';
import { HttpSource } from '../../web/src/sources/http-source.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import { installFakeOpfs, journalFile } from './fake-opfs.js';
import type { FakeFile, FakeFolder } from './fake-opfs.js';
import { TABLES, URL_, SIZE, open, openModel, piecesOf, read } from './fake-cache.js';
import { FakeServer, noise } from './fake-server.js';

const address = (name: string) => `https://example.org/${name}.qsf`;
let top: FakeFolder;
let now: number;

beforeEach(() => {
  now = 1_000_000;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  const storage = { estimate: async () => ({ quota: 5000, usage: 1 }), persisted: async () => true };
  top = installFakeOpfs(() => now, storage);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Keeps a model of so many verified bytes; gives it open. */
async function keep(name: string, bytes: number) {
  const kept = (await openCache(address(name)))!;
  kept.reset({ url: address(name), validator: '"1"', size: bytes });
  kept.write(0, new Uint8Array(bytes));
  kept.mark(0, bytes);
  kept.markComplete();
  return kept;
}

const names = async () => (await cache.list()).map(({ url }) => url);
const folders = () => (top.inside.get('qsf') as FakeFolder | undefined)?.inside.size ?? 0;

/** The file in which a kept model lies, of the only one there is. */
function onlyFile(): FakeFile {
  const [folder] = (top.inside.get('qsf') as FakeFolder).inside.values();
  return (folder as FakeFolder).inside.get('model') as FakeFile;
}

describe('what another tab keeps', () => {
  for (const modes of [true, false]) {
    it(`is read ${modes ? 'by a handle beside its own' : 'through a File where a file has one handle'}`, async () => {
      top = installFakeOpfs(() => now, {}, modes);
      const owner = (await openCache(address('a')))!;
      owner.reset({ url: address('a'), validator: '"1"', size: 400 });
      owner.write(0, noise(400));
      owner.mark(0, 400);
      owner.markComplete();
      let reads = 0;
      onlyFile().onRead = () => reads++;
      const other = (await openCache(address('a')))!;
      expect(other.owned).toBe(false);
      const into = new Uint8Array(100);
      const waiting = other.read(50, into);
      expect(waiting === undefined).toBe(modes);
      await waiting;
      expect(into).toEqual(noise(400).subarray(50, 150));
      expect(reads).toBe(modes ? 1 : 0);
      expect(onlyFile().open).toBe(modes ? 2 : 1);
      // What the file does not hold is nobody's.
      await expect(other.read(350, into)).rejects.toMatchObject({ code: 'truncated' });
      await other.close();
      expect(onlyFile().open).toBe(1);
      await owner.close();
    });
  }
});

describe('a model that two tabs open at once', () => {
  const bytes = noise(SIZE);
  const pieces = piecesOf(bytes);
  const server = () => new FakeServer(bytes);

  /** Reads all pieces and expects them to be right. */
  async function readAll(source: HttpSource): Promise<void> {
    for (const { offset, size, crc } of pieces) {
      const got = await read(source, offset, size, crc);
      expect(Buffer.compare(got, bytes.subarray(offset, offset + size))).toBe(0);
    }
  }

  it('is fetched by one of them', async () => {
    const opening = [openCache(URL_), openCache(URL_)];
    const kept = await Promise.race(opening);
    const owner = await openModel(server(), kept);
    const found = (await Promise.all(opening)).find((cache) => cache !== kept);
    expect([kept?.owned, found?.owned]).toEqual([true, false]);
    const other = await open(server(), found);
    const reading = readAll(other);
    await owner.keep(pieces);
    await reading;
    // The answer by which it knows which file it is.
    expect(other.stats().network).toBeLessThan(TABLES);
    expect(other.stats().cache).toBe(SIZE - TABLES);
    await other.close();
    await owner.close();
  });

  it('is waited for while the record cannot be read', async () => {
    const owner = await openModel(server(), await openCache(URL_));
    const other = await open(server(), await openCache(URL_));
    journalFile(top).stale = 3;
    const reading = readAll(other);
    await owner.keep(pieces);
    await reading;
    expect(journalFile(top).stale).toBe(0);
    expect(other.stats().network).toBeLessThan(TABLES);
    await other.close();
    await owner.close();
  });

  it('is fetched by the other if the first is closed', async () => {
    const owner = await openModel(server(), await openCache(URL_));
    const other = await open(server(), await openCache(URL_));
    const { offset, size, crc } = pieces[0]!;
    await read(owner, offset, size, crc);
    const reading = readAll(other);
    await owner.close();
    await reading;
    expect(other.stats().cache).toBe(size);
    await other.close();
  });

  it('is waited for no longer than the other is open', async () => {
    const owner = await openModel(server(), await openCache(URL_));
    const other = await open(server(), await openCache(URL_));
    const waiting = read(other, pieces[0]!.offset, pieces[0]!.size, pieces[0]!.crc);
    await other.close();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    await owner.close();
  });

  it('is waited for while the first goes on, and 2 s without progress', async () => {
    const owner = await openModel(server(), await openCache(URL_));
    const other = await open(server(), await openCache(URL_));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const wanted = pieces[9]!;
      let came = false;
      const reading = read(other, wanted.offset, wanted.size, wanted.crc).then((got) => {
        came = true;
        return got;
      });
      await vi.advanceTimersByTimeAsync(1500);
      const { offset, size, crc } = pieces[0]!;
      const more = read(owner, offset, size, crc);
      await vi.advanceTimersByTimeAsync(1500);
      await more;
      expect(came).toBe(false);
      await vi.advanceTimersByTimeAsync(1500);
      expect(came).toBe(true);
      expect(Buffer.compare(await reading, bytes.subarray(wanted.offset, wanted.offset + wanted.size))).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    await other.close();
    await owner.close();
  });

  it('is fetched anew if what the first keeps is wrong', async () => {
    const owner = await openModel(server(), await openCache(URL_));
    const { offset, size, crc } = pieces[0]!;
    await read(owner, offset, size, crc);
    onlyFile().bytes.fill(0);
    const other = await open(server(), await openCache(URL_));
    const before = other.stats().network;
    const got = await read(other, offset, size, crc);
    expect(Buffer.compare(got, bytes.subarray(offset, offset + size))).toBe(0);
    expect(other.stats().network).toBe(before + size);
    await other.close();
    await owner.close();
  });
});

describe('the cache', () => {
  it('lists what was a model, and when it was opened', async () => {
    await (await keep('a', 100)).close();
    now += 500;
    await (await keep('b', 50)).close();
    expect(await cache.list()).toEqual([
      { url: address('a'), bytes: 100, total: 100, complete: true, used: 1_000_000 },
      { url: address('b'), bytes: 50, total: 50, complete: true, used: 1_000_500 },
    ]);
    now += 500;
    await (await openCache(address('a')))!.close();
    expect((await cache.state(address('a'))).used).toBe(1_001_000);
    expect(await cache.usage()).toEqual({ models: 2, bytes: 150, quota: 5000, persisted: true });
  });

  it('keeps nothing of what was never a model', async () => {
    const server = new FakeServer(noise(200_000));
    const source = await HttpSource.open(address('page'), await openCache(address('page')), {
      fetch: server.fetch,
    } as never);
    await source.read({ offset: 0, into: new Uint8Array(128), crc: undefined });
    // The engine did not accept what it read.
    expect(await names()).toEqual([]);
    await source.close();
    expect(folders()).toBe(0);
    server.fault = () => ({ kind: 'status', status: 404 });
    const absent = (await openCache(address('absent')))!;
    await expect(HttpSource.open(address('absent'), absent, { fetch: server.fetch } as never)).rejects.toThrow();
    await absent.close();
    expect(folders()).toBe(0);
  });

  it('has nothing of a model that is removed while it is looked up', async () => {
    await (await keep('a', 40)).close();
    const root = top.inside.get('qsf') as FakeFolder;
    const all = root.values.bind(root);
    vi.spyOn(root, 'values').mockImplementationOnce(async function* () {
      for await (const folder of all()) {
        (folder as FakeFolder).inside.clear();
        yield folder;
      }
    });
    expect(await cache.state(address('a'))).toMatchObject({ bytes: 0, total: 0 });
  });

  it('takes names of models of the Hub as load() does', async () => {
    const hub = 'https://huggingface.co/owner/name/resolve/main/a.gguf';
    const kept = (await openCache(hub))!;
    kept.reset({ url: hub, validator: '"1"', size: 40 });
    kept.write(0, new Uint8Array(40));
    kept.mark(0, 40);
    await kept.close();
    expect(await cache.state('hf:owner/name/a.gguf')).toMatchObject({ url: hub, bytes: 40 });
    await cache.remove('hf:owner/name/a.gguf');
    expect(await names()).toEqual([]);
    await expect(cache.state('hf:owner')).rejects.toMatchObject({ code: 'bad_argument' });
  });

  it('finds the models of a repository by its name, the one that was opened last first', async () => {
    for (const [name, bytes] of [
      ['name', 20],
      ['name', 40],
      ['name-2', 60],
    ] as const) {
      const hub = `https://huggingface.co/owner/${name}/resolve/main/${bytes}.gguf`;
      const kept = (await openCache(hub))!;
      kept.reset({ url: hub, validator: '"1"', size: 100 });
      kept.write(0, new Uint8Array(bytes));
      kept.mark(0, bytes);
      await kept.close();
      now += 1000;
    }
    expect(await cache.state('hf:owner/name')).toMatchObject({ bytes: 40 });
    expect(await cache.state('hf:owner/name@other')).toMatchObject({ bytes: 0 });
    await cache.remove('https://huggingface.co/');
    expect(await names()).toHaveLength(3);
    await cache.remove('hf:owner/name');
    expect(await names()).toEqual(['https://huggingface.co/owner/name-2/resolve/main/60.gguf']);
  });

  it('keeps a file of each type that the matrices of an address are rounded to', async () => {
    for (const [type, bytes] of [
      [undefined, 20],
      ['q4_0', 40],
      ['q8_0', 60],
    ] as const) {
      const kept = (await openCache(address('a'), undefined, undefined, type))!;
      const made = { url: address('a'), validator: '"1"', size: bytes, of: 500, ...(type && { quantType: type }) };
      expect(kept.identity).toBeUndefined();
      kept.reset(made);
      kept.write(0, new Uint8Array(bytes));
      kept.mark(0, bytes);
      kept.markComplete();
      await kept.close();
      now += 1000;
    }
    const kept = async () => (await cache.list()).map(({ url, quantType, bytes }) => ({ url, quantType, bytes }));
    expect((await kept()).sort((a, b) => a.bytes - b.bytes)).toEqual([
      { url: address('a'), quantType: undefined, bytes: 20 },
      { url: address('a'), quantType: 'q4_0', bytes: 40 },
      { url: address('a'), quantType: 'q8_0', bytes: 60 },
    ]);
    expect(await cache.state(address('a'))).toMatchObject({ quantType: 'q8_0', bytes: 60 });
    await makeRoom(0, address('a'), 'q4_0');
    expect(await kept()).toMatchObject([{ quantType: 'q4_0' }]);
    await cache.remove(address('a'));
    expect(await kept()).toEqual([]);
  });

  it('keeps a part of a model whose tab was closed', async () => {
    const kept = (await openCache(address('part')))!;
    kept.reset({ url: address('part'), validator: null, size: 100 });
    kept.write(0, new Uint8Array(40));
    kept.mark(0, 40);
    await kept.close();
    expect(await cache.state(address('part'))).toMatchObject({ bytes: 40, total: 100, complete: false });
  });

  it('removes what was not opened for long', async () => {
    for (const name of ['a', 'b', 'c']) {
      await (await keep(name, 100)).close();
      now += 1000;
    }
    expect(await cache.prune({ maxAge: 2500 })).toEqual([address('a')]);
    expect(await names()).toEqual([address('b'), address('c')]);
    expect(await cache.prune({})).toEqual([]);
    await expect(cache.prune({ maxAge: -1 })).rejects.toMatchObject({ code: 'bad_argument' });
    await expect(cache.prune({ maxage: 1 } as never)).rejects.toThrow(/did you mean maxAge/);
  });

  it('removes what was opened longest ago until the others take less, and nothing that is open', async () => {
    for (const name of ['c', 'a', 'b']) {
      await (await keep(name, 100)).close();
      now += 1000;
    }
    const open = (await openCache(address('c')))!;
    now += 1000;
    expect(await cache.prune({ maxBytes: 250 })).toEqual([address('a')]);
    expect(await cache.prune({ maxBytes: 0 })).toEqual([address('b')]);
    await open.close();
    expect(await names()).toEqual([address('c')]);
  });

  it('makes room for one model among the others', async () => {
    for (const name of ['a', 'b']) {
      await (await keep(name, 100)).close();
      now += 1000;
    }
    await makeRoom(100, address('a'));
    expect(await names()).toEqual([address('a'), address('b')]);
    await makeRoom(99, address('a'));
    expect(await names()).toEqual([address('a')]);
  });
});

describe('asking to persist', () => {
  const ask = async (storage: object) => {
    vi.resetModules();
    vi.stubGlobal('navigator', { storage });
    const { askToPersist } = await import('../../web/src/page/persist.js');
    return [await askToPersist(), await askToPersist()];
  };

  it('happens once, and not where it was granted before', async () => {
    const persist = vi.fn(async () => true);
    expect(await ask({ persisted: async () => false, persist })).toEqual([true, true]);
    expect(persist).toHaveBeenCalledOnce();
    persist.mockClear();
    expect(await ask({ persisted: async () => true, persist })).toEqual([true, true]);
    expect(persist).not.toHaveBeenCalled();
  });

  it('does no harm where nobody can be asked', async () => {
    const persist = async () => Promise.reject(new Error('no'));
    expect(await ask({ persisted: async () => false, persist })).toEqual([false, false]);
    expect(await ask({})).toEqual([false, false]);
  });

  it('refuses what is no address, and no options, with errors of its own', async () => {
    for (const ask of [
      () => cache.state(5 as never),
      () => cache.remove(undefined as never),
      () => cache.prune(undefined as never),
      () => cache.prune(null as never),
    ])
      await expect(ask()).rejects.toMatchObject({ name: 'QSFError', code: 'bad_argument' });
  });
});
