import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { QSF } from '../../web/src/qsf.js';
import type { LoadOptions, ModelSource, Progress } from '../../web/src/types.js';
import { pause, until } from './fake-engine.js';
import { FakeWorker, failure, installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://example.org/model.qsf';
const MiB = 1024 * 1024;

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(removeFakeWorker);

const worker = () => FakeWorker.made[0]!;

describe('load()', () => {
  it('asks with defaults for what is not given, and tells how far it is', async () => {
    const seen: Progress[] = [];
    backend.answers.load = async (report) => {
      report({ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 });
      await pause();
      return { ok: true, value: false };
    };
    await QSF.load('model.qsf', { onProgress: (p) => seen.push(p) });
    expect(backend.loads).toEqual([
      {
        source: 'https://page.test/demo/model.qsf',
        memory: 256 * MiB,
        open: {
          maxSeqLen: 0,
          sequences: 1,
          chunk: 0,
          ringSlots: 0,
          streamAll: false,
          recheck: false,
          allLogits: false,
          readRate: 0,
          computeRate: 0,
        },
        kv: undefined,
        cache: true,
        cacheLimit: undefined,
        background: false,
        variant: undefined,
        threads: undefined,
        network: {},
      },
    ]);
    expect(seen).toEqual([{ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 }]);
  });

  it('passes on what is given', async () => {
    const given = { memory: MiB + 1, maxSeqLen: 64, streamAll: true, kv: '4bit', background: true, cache: false };
    await QSF.load(URL_, { ...given, threads: 2, variant: 'simd' } as LoadOptions);
    expect(backend.loads[0]).toMatchObject({
      ...{ memory: MiB + 65_536, open: { maxSeqLen: 64, streamAll: true, sequences: 1 } },
      ...{ kv: '4bit', background: true, cache: false, threads: 2, variant: 'simd' },
    });
  });

  it('takes a module by its address, its folder or its bytes', async () => {
    await QSF.load(URL_, { wasmUrl: 'own/qsf-simd.wasm' });
    await QSF.load(URL_, { wasmUrl: new URL('https://cdn.test/qsf/'), threads: 2 });
    await QSF.load(URL_, { wasmUrl: '/qsf/' });
    await QSF.load(URL_, { wasmBinary: new ArrayBuffer(8) });
    await QSF.load(URL_, { wasmBinary: new Uint8Array(8).subarray(2, 4), threads: 4 });
    expect(backend.loads).toMatchObject([
      { wasm: 'https://page.test/demo/own/qsf-simd.wasm', threads: 1 },
      { wasm: 'https://cdn.test/qsf/', threads: 2 },
      { wasm: 'https://page.test/qsf/', threads: undefined },
      { wasm: new Uint8Array(8), threads: 1 },
      { wasm: new Uint8Array(2), threads: 4 },
    ]);
  });

  it.each<[object, string]>([
    [{ wasmUrl: 'a.wasm', wasmBinary: new ArrayBuffer(8) }, 'wasmUrl and wasmBinary are both given'],
    [{ wasmBinary: 'a.wasm' }, 'wasmBinary is a string; it must be an ArrayBuffer or a view of one'],
    [{ wasmUrl: 'http://[' }, 'wasmUrl is "http://["; it must be an address'],
    [{ memory: 0 }, 'memory'],
    [{ memory: 5 * 1024 * MiB }, 'memory'],
    [{ memory: NaN }, 'memory'],
    [{ maxSeqLen: -1 }, 'maxSeqLen is -1; it must be a whole number from 0 to 16777216'],
    [{ maxSeqLen: 1.5 }, 'maxSeqLen is 1.5; it must be a whole number from 0 to 16777216'],
    [{ streamAll: 1 }, 'streamAll is 1; it must be true or false'],
    [{ kv: 'q8' }, 'kv is "q8"; it must be one of f32, f16, 8bit, 4bit, 2bit'],
    [{ variant: 'fast' }, 'variant is "fast"; it must be one of relaxed, relaxedpairs, simd'],
    [{ memory: 4096 * MiB }, 'memory is 4294967296 bytes; it must be more than 0 and at most 4294901760'],
    [{ memory: '64' }, 'memory is 64 bytes'],
    [{ threads: 9 }, 'threads is 9; it must be a whole number from 1 to 8'],
    [{ threads: 1.5 }, 'threads is 1.5'],
    [{ cache: 'no' }, 'cache is "no"; it must be true or false'],
    [{ onProgress: 3 }, 'onProgress is 3; it must be a function'],
    [{ signal: {} }, 'signal is an object; it must be an AbortSignal'],
    [{ memroy: MiB }, 'load() has no option "memroy"; did you mean memory?'],
    [{ max_seq_len: 64 }, 'load() has no option "max_seq_len"; did you mean maxSeqLen?'],
    [{ sequences: 3 }, 'load() has no option "sequences"; known are background, cache,'],
    [{ network: { retries: -1 } }, 'retries is -1; it must be a whole number from 0 to 4294967295'],
    [{ network: { retry_delay: 1 } }, 'network has no option "retry_delay"; did you mean retryDelay?'],
    [{ network: { credentials: 'all' } }, 'network.credentials is "all"; it must be one of omit, same-origin, include'],
    [{ network: 3 }, 'network is 3; it must be an object'],
  ])('refuses %o without a worker', async (options, sentence) => {
    await expect(QSF.load(URL_, options)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(sentence) as string,
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each(['file:///model.qsf', 'http://[', 'blob:x'])('refuses the address %s', async (address) => {
    await expect(QSF.load(address)).rejects.toMatchObject({ code: 'bad_argument' });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each([undefined, null, 7, {}, ['a']])('refuses %o as a model', async (source) => {
    await expect(QSF.load(source as unknown as string)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(
        'it must be an address, a File or Blob, a FileSystemFileHandle or an Array',
      ) as string,
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each<[string, ModelSource]>([
    ['an ArrayBuffer', Uint8Array.of(81, 83, 70).buffer],
    ['a part of one', Uint8Array.of(0, 81, 83, 70).subarray(1)],
    ['a file handle', { kind: 'file', getFile: async () => new Blob(['QSF']) } as unknown as FileSystemFileHandle],
  ])('takes %s', async (_, source) => {
    await QSF.load(source);
    expect(await (backend.loads[0]!.source as Blob).text()).toBe('QSF');
  });

  it('asks the browser to keep a model that is kept, unless told not to', async () => {
    const persist = vi.fn(async () => true);
    vi.stubGlobal('navigator', { storage: { persisted: async () => false, persist } });
    await QSF.load(URL_);
    backend.kept = true;
    await QSF.load(URL_, { persist: false });
    await pause();
    expect(persist).not.toHaveBeenCalled();
    await QSF.load(URL_);
    await until(() => persist.mock.calls.length > 0);
    await QSF.load(URL_);
    await pause();
    expect(persist).toHaveBeenCalledOnce();
  });

  it('ends the worker of a model that nobody holds any more', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const held = await QSF.load(URL_);
    await (async () => void (await (await QSF.load(URL_)).stats()))();
    await until(() => {
      gc();
      return FakeWorker.made[1]!.terminated;
    });
    expect(worker().terminated).toBe(false);
    expect(await held.stats()).toEqual({ position: 5 });
  });

  it('tells what the worker warns of', async () => {
    backend.answers.load = async (_report, warn) => {
      warn('No room.');
      await pause();
      return { ok: true, value: false };
    };
    const warnings: string[] = [];
    await QSF.load(URL_, { onWarning: (warning) => warnings.push(warning) });
    const shown = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await QSF.load(URL_);
    expect(warnings).toEqual(['No room.']);
    expect(shown.mock.calls).toEqual([['QSF: No room.']]);
    shown.mockRestore();
  });

  it('rejects with the address and the status that the worker names', async () => {
    backend.answers.load = async () => ({
      ok: false,
      error: { code: 'http_status', sentence: 'No.', url: URL_, status: 404 },
    });
    await expect(QSF.load(URL_)).rejects.toMatchObject({ code: 'http_status', url: URL_, status: 404 });
  });

  it("that fails rejects with the worker's error and ends it", async () => {
    backend.answers.load = async () => failure('bad_magic', 'It begins with "GGUF".');
    const loading = QSF.load(URL_);
    await expect(loading).rejects.toMatchObject({
      name: 'QSFError',
      code: 'bad_magic',
      message: 'It begins with "GGUF".',
    });
    await until(() => worker().terminated);
  });

  it('whose worker does not run says so', async () => {
    backend.answers.load = () => new Promise(() => undefined);
    const loading = QSF.load(URL_);
    await until(() => backend.calls.includes('load'));
    worker().break('');
    await expect(loading).rejects.toMatchObject({ code: 'unsupported_host' });
    await until(() => worker().terminated);
  });

  it('aborted before it begins makes no worker', async () => {
    const reason = new Error('no more');
    await expect(QSF.load(URL_, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(FakeWorker.made).toEqual([]);
  });

  it('aborted on its way rejects at once with the reason and ends the worker', async () => {
    backend.answers.load = () => new Promise(() => undefined);
    backend.answers.close = () => new Promise(() => undefined);
    const abort = new AbortController();
    const loading = QSF.load(URL_, { signal: abort.signal });
    await until(() => backend.calls.includes('load'));
    const reason = new Error('no more');
    abort.abort(reason);
    await expect(loading).rejects.toBe(reason);
    await until(() => worker().terminated);
  });

  it('is not aborted by a signal that comes too late', async () => {
    const abort = new AbortController();
    const forget = vi.spyOn(abort.signal, 'removeEventListener');
    const llm = await QSF.load(URL_, { signal: abort.signal });
    expect(forget).toHaveBeenCalledOnce();
    abort.abort();
    await pause(10);
    expect(worker().terminated).toBe(false);
    expect(await llm.stats()).toEqual({ position: 5 });
  });
});
