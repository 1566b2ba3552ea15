import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { QSF } from '../../web/src/page/qsf.js';
import type { NamedFile } from '../../web/src/contract.js';
import type { KvPolicy } from '../../web/src/kv-policy-types.js';
import type { Progress } from '../../web/src/progress-types.js';
import type { LoadOptions, ModelSource } from '../../web/src/types.js';
import { pause, stays, until } from './fake-engine.js';
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
          guesses: 0,
          guessByLayers: false,
          guessByHead: false,
          guessLayers: 0,
          logprobs: false,
          sequences: 1,
          chunk: 0,
          ringSlots: 0,
          streamAll: false,
          recheck: false,
          allLogits: false,
          readRate: 0,
          computeRate: 0,
          watched: false,
          kvWindow: 0,
          kvSinks: 0,
          kvChosen: 0,
          textBytes: 0,
        },
        kv: undefined,
        cache: true,
        cacheLimit: undefined,
        sha256: undefined,
        background: false,
        lazy: false,
        variant: undefined,
        threads: undefined,
        network: {},
      },
    ]);
    expect(seen).toEqual([{ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 }]);
  });

  it('passes on what is given', async () => {
    const given = {
      memory: MiB + 1,
      maxSeqLen: 64,
      streamAll: true,
      kv: '4bit',
      background: true,
      cache: false,
      lazy: true,
      quantType: 'Q4_0',
    };
    await QSF.load(URL_, { ...given, threads: 2, variant: 'simd', sha256: 'AB'.repeat(32) } as LoadOptions);
    expect(backend.loads[0]).toMatchObject({
      ...{ memory: MiB + 65_536, open: { maxSeqLen: 64, streamAll: true, sequences: 1 } },
      ...{
        kv: '4bit',
        background: true,
        lazy: true,
        cache: false,
        threads: 2,
        variant: 'simd',
        sha256: 'ab'.repeat(32),
        quantType: 'q4_0',
      },
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

  it.each<[KvPolicy, number[]]>([
    ['all', [0, 0, 0]],
    ['window:1024', [1024, 0, 0]],
    ['sinks:4+1020', [1020, 4, 0]],
    ['h2o:512', [512, 0, 1]],
    ['snapkv:512', [512, 0, 2]],
  ])('asks the engine for the policy %s', async (kvPolicy, numbers) => {
    await QSF.load('model.qsf', { kvPolicy });
    const { kvWindow, kvSinks, kvChosen } = backend.loads.at(-1)!.open;
    expect([kvWindow, kvSinks, kvChosen]).toEqual(numbers);
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
    [{ kvPolicy: 'lru:9' }, 'kvPolicy is "lru:9"; it must be all, window:N, sinks:A+N, h2o:N or snapkv:N'],
    [{ kvPolicy: 'window:0' }, 'kvPolicy is "window:0"; it must be'],
    [{ kvPolicy: 'window:1e3' }, 'kvPolicy is "window:1e3"; it must be'],
    [{ kvPolicy: 'sinks:4' }, 'kvPolicy is "sinks:4"; it must be'],
    [{ kvPolicy: ' all' }, 'kvPolicy is " all"; it must be'],
    [{ kvPolicy: 9 }, 'kvPolicy is 9; it must be'],
    [{ kvPolicy: 'window:16777217' }, 'kvWindow is 16777217; it must be a whole number from 0 to 16777216'],
    [{ variant: 'fast' }, 'variant is "fast"; it must be one of relaxed, relaxedpairs, simd'],
    [{ memory: 4096 * MiB }, 'memory is 4294967296 bytes; it must be more than 0 and at most 4294901760'],
    [{ memory: '64' }, 'memory is "64" bytes'],
    [{ threads: 9 }, 'threads is 9; it must be a whole number from 1 to 8'],
    [{ threads: 1.5 }, 'threads is 1.5'],
    [{ sha256: 5 }, 'sha256 is 5; it must be 64 hexadecimal digits'],
    [{ sha256: 'g'.repeat(64) }, 'it must be 64 hexadecimal digits'],
    [{ sha256: `${'a'.repeat(64)} ` }, 'it must be 64 hexadecimal digits'],
    [{ quantType: 4 }, 'quantType is 4; it must be a text'],
    [{ quantType: '' }, 'quantType is ""; it must be one of f32, f16, '],
    [{ quantType: 'IQ2_XS' }, 'quantType is "IQ2_XS"; it must be one of f32, f16, '],
    [{ quantType: 'iq1_s' }, 'q2_0-128, q8_f32, i2_s, bitnet-32, qk256; qsf-convert has those that need a search'],
    [{ quantType: ' q4_0' }, 'quantType is " q4_0"; it must be one of'],
    [{ cache: 'no' }, 'cache is "no"; it must be true or false'],
    [{ onProgress: 3 }, 'onProgress is 3; it must be a function'],
    [{ signal: {} }, 'signal is an object; it must be an AbortSignal'],
    [{ memroy: MiB }, 'load() has no option "memroy"; did you mean memory?'],
    [{ max_seq_len: 64 }, 'load() has no option "max_seq_len"; did you mean maxSeqLen?'],
    [{ turbo: 3 }, 'load() has no option "turbo"; known are background, cache,'],
    [{ sequences: 65 }, 'sequences is 65; it must be a whole number from 1 to 64'],
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

  it.each([
    [null, 'the argument of load() is null; it must be an object'],
    [{ memory: 64n }, 'memory is 64 bytes; it must be more than 0'],
    [{ network: { headers: 'Bearer s3cret' } }, 'network.headers is a string; it must be an object of names'],
    [{ network: { headers: { 'a b': 's3cret' } } }, 'network.headers has a name or a value that no request can have'],
  ])('refuses %s with an error of its own', async (options, sentence) => {
    const loading = QSF.load(URL_, options as never);
    await expect(loading).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    await expect(loading).rejects.not.toThrow(/s3cret/);
    expect(FakeWorker.made).toEqual([]);
  });

  it('takes headers as fetch() does', async () => {
    const record = { 'X-Key': 'a', Authorization: 'Bearer b' };
    for (const headers of [record, new Headers(record), Object.entries(record)] as HeadersInit[])
      await QSF.load(URL_, { network: { headers } });
    const sent = { headers: { 'x-key': 'a', authorization: 'Bearer b' } };
    expect(backend.loads.map(({ network }) => network)).toEqual([sent, sent, sent]);
  });

  it('takes bytes of shared memory, of which it makes a copy', async () => {
    const shared = new Uint8Array(new SharedArrayBuffer(5), 1, 3);
    shared.set([81, 83, 70]);
    await QSF.load(shared as never, { wasmBinary: shared as never });
    const { source, wasm } = backend.loads[0]!;
    expect([...(source as Uint8Array)]).toEqual([81, 83, 70]);
    expect([...(wasm as Uint8Array)]).toEqual([81, 83, 70]);
  });

  it('that asks for what no message can bring ends in an error of its own', async () => {
    vi.spyOn(FakeWorker.prototype, 'postMessage').mockImplementationOnce(() => {
      throw new DOMException('A function could not be cloned.', 'DataCloneError');
    });
    await expect(QSF.load(URL_)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'internal', message: 'DataCloneError: A function could not be cloned.' },
    });
  });

  it('whose worker the browser does not make ends in an error of its own', async () => {
    vi.stubGlobal('Worker', function refuse() {
      throw new TypeError('Not today.');
    });
    await expect(QSF.load(URL_)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'unsupported_host', message: 'the worker could not be started: Not today.' },
    });
  });

  it('is how a model is opened, and new is not', () => {
    expect(() => new (QSF as unknown as new () => QSF)()).toThrow(
      expect.objectContaining({
        ...{ name: 'QSFError', code: 'bad_argument', message: 'a QSF is made by QSF.load(), not by new' },
      }) as Error,
    );
  });

  it.each(['file:///model.qsf', 'http://[', 'blob:x'])('refuses the address %s', async (address) => {
    await expect(QSF.load(address)).rejects.toMatchObject({ code: 'bad_argument' });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each(['', undefined, null, 7, {}, ['a']])('refuses %o as a model', async (source) => {
    await expect(QSF.load(source as unknown as string)).rejects.toMatchObject({
      code: 'bad_argument',
      message: expect.stringContaining(
        'it must be an address, a File or Blob, a list of files, a FileSystemHandle or an Array',
      ) as string,
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each<[unknown, string]>([
    ['hf:owner', '"hf:owner" names no model of the Hub; write hf:OWNER/NAME, .* @REVISION'],
    [new Response('QSF1'), 'the model is a Response; .*: give its address, .* or the result of its blob\\(\\)'],
    [Promise.resolve('a.qsf'), 'the model is a Promise; .*: await it first'],
    [['a-1.gguf', 'a-2.gguf'], 'the model is a list; .*: a list has files only, and the address of one part'],
    [[new Blob(['a'])], 'the model is a list; .*: a list has files only'],
    [[], 'the model is a list; '],
  ])('says what to give in place of %o', async (source, sentence) => {
    await expect(QSF.load(source as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringMatching(sentence) as string },
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it.each([
    ['hf:owner/repo/a/model-8bit.qsf', 'owner/repo/resolve/main/a/model-8bit.qsf'],
    ['hf://owner/repo/model.gguf@v1/2', 'owner/repo/resolve/v1%2F2/model.gguf'],
  ])('takes the file %s of the Hub', async (source, path) => {
    await QSF.load(source);
    expect(backend.loads[0]!.source).toBe(`https://huggingface.co/${path}`);
  });

  it.each([
    ['huggingface:owner/repo', 'hf:owner/repo@main'],
    ['hf:owner/repo@dev', 'hf:owner/repo@dev'],
  ])('lets the worker choose in the repository %s', async (source, name) => {
    await QSF.load(source);
    expect(backend.loads[0]!.source).toBe(name);
  });

  const files = [new File(['a'], 'config.json'), new File(['b'], 'model.safetensors')];
  async function* entries() {
    for (const file of files) yield { kind: 'file', name: file.name, getFile: async () => file };
  }
  it.each<[string, unknown]>([
    ['a list of files', files],
    ['a FileList', { [Symbol.toStringTag]: 'FileList', [Symbol.iterator]: () => files.values() }],
    ['a directory', { kind: 'directory', values: entries }],
    ['a File, whose name a message of Node loses', files[0]],
  ])('takes %s', async (_, source) => {
    await QSF.load(source as never);
    expect((backend.loads[0]!.source as NamedFile[]).map(({ name }) => name)).toEqual(
      source === files[0] ? ['config.json'] : ['config.json', 'model.safetensors'],
    );
  });

  const PATHS = ['config.json', 'modules.json', '1_Pooling/config.json'];

  it.each([
    ['', PATHS],
    ['all/models/', PATHS],
    ['', ['model-00001-of-00002.gguf', 'model-00002-of-00002.gguf']],
    ['', ['a/config.json']],
  ])('takes files of a directory by their paths in it, in %o', async (where, paths) => {
    const given = paths.map((path) =>
      Object.assign(new File([path], path.split('/').at(-1)!), { webkitRelativePath: `picked/${where}${path}` }),
    );
    await QSF.load(given);
    const named = backend.loads[0]!.source as NamedFile[];
    const names = paths.length === 1 ? ['config.json'] : paths;
    expect(named.map(({ name }) => name)).toEqual(names);
    expect(await Promise.all(named.map(({ file }) => file.text()))).toEqual(paths);
  });

  it('takes those of the directories in a directory, which are not hidden, but not of deeper ones', async () => {
    const file = { kind: 'file', name: 'config.json', getFile: async () => files[0] };
    const directory = (name: string, inside: object[]) => ({ kind: 'directory', name, values: () => inside });
    const inside = [file, directory('1_Pooling', [file, directory('deeper', [file])]), directory('.git', [file])];
    await QSF.load(directory('picked', inside) as never);
    expect((backend.loads[0]!.source as NamedFile[]).map(({ name }) => name)).toEqual([PATHS[0], PATHS[2]]);
  });

  it('tells of a file handle that gives no file', async () => {
    const getFile = () => Promise.reject(new DOMException('The request is not allowed', 'NotAllowedError'));
    await expect(QSF.load({ kind: 'file', getFile } as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'io_error' },
      message: expect.stringMatching(
        /^the FileSystemFileHandle gave no file: The request is .* requestPermission/,
      ) as string,
    });
  });

  it.each<[string, ModelSource]>([
    ['a Blob', new Blob(['QSF'])],
    ['a file handle', { kind: 'file', getFile: async () => new Blob(['QSF']) } as unknown as FileSystemFileHandle],
  ])('takes %s', async (_, source) => {
    await QSF.load(source);
    expect(await (backend.loads[0]!.source as Blob).text()).toBe('QSF');
  });

  it.each<[string, Uint8Array<ArrayBuffer> | ArrayBuffer]>([
    ['an ArrayBuffer', Uint8Array.of(81, 83, 70).buffer],
    ['a part of one', Uint8Array.of(0, 81, 83, 70, 0).subarray(1, 4)],
  ])('takes %s, of which the message has one copy and no other byte', async (_, given) => {
    const before = given.byteLength;
    await QSF.load(given);
    const source = backend.loads[0]!.source as Uint8Array<ArrayBuffer>;
    expect([...source]).toEqual([81, 83, 70]);
    expect(source.buffer.byteLength).toBe(3);
    // The caller keeps its own bytes, and the message moves the copy.
    expect(given.byteLength).toBe(before);
    const moved = FakeWorker.made[0]!.transferred.filter((one) => one instanceof ArrayBuffer);
    expect(moved.map(({ byteLength }) => byteLength)).toEqual([0]);
  });

  it('of bytes that the browser has no memory to copy ends in out_of_memory', async () => {
    const bytes = new Uint8Array(8);
    const slice = vi.spyOn(Uint8Array.prototype, 'slice').mockImplementation(() => {
      throw new RangeError('Array buffer allocation failed');
    });
    const loading = QSF.load(bytes);
    slice.mockRestore();
    await expect(loading).rejects.toMatchObject({
      ...{ code: 'out_of_memory', message: expect.stringMatching(/refused 8 bytes .* as a File or Blob/) as string },
    });
    expect(FakeWorker.made).toEqual([]);
  });

  it('asks the browser to keep a model that is kept, unless told not to', async () => {
    const persist = vi.fn(async () => true);
    vi.stubGlobal('navigator', { storage: { persisted: async () => false, persist } });
    await QSF.load(URL_);
    backend.kept = true;
    await QSF.load(URL_, { persist: false });
    await stays(() => persist.mock.calls.length === 0);
    await QSF.load(URL_);
    await until(() => persist.mock.calls.length > 0);
    await QSF.load(URL_);
    await stays(() => persist.mock.calls.length === 1);
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

  it('goes on when its listeners throw, and leaves their errors to the page', async () => {
    const errors: unknown[] = [];
    const later = globalThis.setTimeout;
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms?: number) =>
      later(() => {
        try {
          work();
        } catch (error) {
          errors.push(error);
        }
      }, ms)) as typeof setTimeout);
    let answers = 0;
    backend.answers.load = async (report, warn) => {
      await report({ phase: 'download', loaded: 1, total: 2, network: 1, cache: 0 });
      await warn('No room.');
      answers++;
      return { ok: true, value: false };
    };
    const fail = (what: string) => () => {
      throw new Error(what);
    };
    await QSF.load(URL_, { onProgress: fail('progress'), onWarning: fail('warning') });
    await until(() => errors.length === 2);
    timers.mockRestore();
    expect(answers).toBe(1);
    expect(errors).toEqual([new Error('progress'), new Error('warning')]);
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
    await stays(() => !worker().terminated);
    expect(await llm.stats()).toEqual({ position: 5 });
  });
});
