// Calls that no type allows, as JavaScript callers make them: each ends in an error of the package's own.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { QSFError } from '../../web/src/errors.js';
import { QSF } from '../../web/src/page/qsf.js';
import { FakeLocks } from './fake-locks.js';
import { FakeWorker, installFakeWorker, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://example.org/model.qsf';

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(removeFakeWorker);

/** Values that have no text: a conversion of the first three throws. */
const bare = Object.create(null) as object;
const noText = {
  toString: () => {
    throw new TypeError('no text');
  },
};
const symbol = Symbol('x');
const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const odd: unknown[] = [bare, noText, symbol, cyclic, 5n, null, () => 0, [5n], [symbol], [bare], NaN, new Date(NaN)];

/** Returns how a call ends: with its value, or its error. */
const endOf = async (call: () => unknown): Promise<unknown> => {
  try {
    return await call();
  } catch (error) {
    return error;
  }
};

/** An error that an odd value may not end in: any but the package's own. */
async function expectOwnError(call: () => unknown): Promise<void> {
  const end = await endOf(call);
  if (end instanceof Error) expect(end).toBeInstanceOf(QSFError);
}

describe('an odd value', () => {
  const ofLoad = [
    ...[
      'memory',
      'maxSeqLen',
      'guesses',
      'streamAll',
      'textBytes',
      'readRate',
      'computeRate',
      'kv',
      'cache',
      'cacheLimit',
    ],
    ...['shared', 'persist', 'background', 'variant', 'threads', 'network', 'workerUrl', 'wasmUrl', 'wasmBinary'],
    ...['onProgress', 'onWarning', 'signal', 'unknown'],
  ];
  it.each(ofLoad)('as %s of load()', async (name) => {
    for (const value of odd) await expectOwnError(() => QSF.load(URL_, { [name]: value } as never));
  });

  const ofNetwork = ['headers', 'credentials', 'retries', 'retryDelay', 'parallel', 'timeout'];
  it.each(ofNetwork)('as %s of network', async (name) => {
    for (const value of odd) await expectOwnError(() => QSF.load(URL_, { network: { [name]: value } as never }));
  });

  it('as the model, or in place of options', async () => {
    for (const value of odd) {
      await expectOwnError(() => QSF.load(value as never));
      await expectOwnError(() => QSF.load(URL_, value as never));
    }
  });

  describe('to an open model', () => {
    let llm: QSF;
    beforeEach(async () => {
      llm = await QSF.load(URL_);
      backend.answers.next = async () => ({ ok: true, value: { pieces: [], result } });
    });

    const ofGeneration = [
      ...['temperature', 'topK', 'seed', 'maxTokens', 'addBos', 'logitBias', 'samplers', 'drySequenceBreakers'],
      ...['responseFormat', 'stop', 'signal', 'continue', 'onPromptProgress', 'unknown'],
    ];
    it.each(ofGeneration)('as %s of generate()', async (name) => {
      for (const value of odd) await expectOwnError(() => llm.generate('Once', { [name]: value } as never).text());
    });

    it.each(['temperature', 'template', 'templateArgs', 'tools', 'responseFormat'])('as %s of chat()', async (name) => {
      for (const value of odd) await expectOwnError(() => llm.chat('Once', { [name]: value } as never).text());
    });

    const message = { role: 'user', content: 'Hello' };
    const calls: Record<string, (value: never) => unknown> = {
      'the prompt': (value) => llm.generate(value).text(),
      'a token id': (value) => llm.generate([value]).text(),
      'options of generate()': (value) => llm.generate('Once', value).text(),
      'a schema': (schema) => llm.generate('Once', { responseFormat: { type: 'json_schema', schema } }).text(),
      'a bias': (value) => llm.generate('Once', { logitBias: { 5: value } }).text(),
      messages: (value) => llm.chat(value).text(),
      'what messages are in JSON': (value) => llm.chat(Object.assign([], { toJSON: () => value })).text(),
      'a message': (value) => llm.chat([value]).text(),
      'a content': (content) => llm.chat([{ role: 'user', content }]).text(),
      'what a message is in JSON': (value) => llm.chat([{ role: 'user', toJSON: () => value }]).text(),
      'a role': (role) => llm.chat([{ role }]).text(),
      'options of chat()': (value) => llm.chat('Once', value).text(),
      'options of render()': (value) => llm.render([message], value),
      'options of conversation()': (value) => llm.conversation(value).messages,
      'a text to embed': (value) => llm.embed(value),
      'one of the texts': (value) => llm.embed([value]),
      'options of embed()': (value) => llm.embed('Once', value),
      'a query': (value) => llm.rerank(value, ['Once']),
      'texts to rank': (value) => llm.rerank('Once', value),
      'options of rerank()': (value) => llm.rerank('Once', ['upon'], value),
      'a text to tokenize': (value) => llm.tokenize(value),
      'options of tokenize()': (value) => llm.tokenize('Once', value),
      'tokens of detokenize()': (value) => llm.detokenize(value),
      'the number of tokens': (length) => llm.detokenize({ length }),
      'a position': (value) => llm.rewind(value),
      'parameters of chat.completions': (value) => llm.chat.completions.create(value),
      'options of chat.completions': (value) => llm.chat.completions.create({ messages: [message] } as never, value),
      'messages of chat.completions': (messages) => llm.chat.completions.create({ messages }),
      'parameters of completions': (value) => llm.completions.create(value),
      'a prompt of completions': (prompt) => llm.completions.create({ prompt }),
      'parameters of embeddings': (value) => llm.embeddings.create(value),
      'an input of embeddings': (input) => llm.embeddings.create({ input }),
      'an address of the cache': (value) => QSF.cache.remove(value),
      'limits of the cache': (value) => QSF.cache.prune(value),
    };
    it.each(Object.keys(calls))('as %s', async (name) => {
      for (const value of odd) await expectOwnError(() => calls[name]!(value as never));
    });
  });
});

describe('a call is refused with the reason', () => {
  it('except null as cacheLimit, which is none', async () => {
    await QSF.load(URL_, { cacheLimit: null as never });
    expect(backend.loads[0]!.cacheLimit).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('if it has more tokens than any context', async () => {
    const llm = await QSF.load(URL_);
    await expect(llm.detokenize({ length: 2 ** 40 })).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: 'there are 1099511627776 tokens; there can be 16777216' },
    });
  });

  const view = (bytes: ArrayBuffer) => new DataView(bytes);
  it.each<[string, (bytes: ArrayBuffer) => unknown[]]>([
    ['the model', (bytes) => [bytes]],
    ['the model', (bytes) => [view(bytes)]],
    ['wasmBinary', (bytes) => [URL_, { wasmBinary: bytes }]],
    ['wasmBinary', (bytes) => [URL_, { wasmBinary: view(bytes) }]],
  ])('if %s was transferred', async (what, argumentsOf) => {
    const bytes = new ArrayBuffer(8);
    const [source, options] = argumentsOf(bytes) as [ArrayBuffer, object?];
    structuredClone(bytes, { transfer: [bytes] });
    await expect(QSF.load(source, options)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument' },
      message: `${what} has no memory any more, because it was transferred`,
    });
  });

  it.each([
    [{ workerUrl: null }, 'workerUrl is null; it must be an address'],
    [{ wasmUrl: {} }, 'wasmUrl is an object; it must be an address'],
    [{ memory: symbol }, 'memory is Symbol(x) bytes'],
    [{ onProgress: bare }, 'onProgress is an object; it must be a function'],
  ])('for %o', async (options, sentence) => {
    await expect(QSF.load(URL_, options as never)).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string },
    });
    expect(FakeWorker.made).toEqual([]);
  });
});

describe('where no worker can be started, as in shared and service workers', () => {
  beforeEach(() => {
    vi.stubGlobal('Worker', undefined);
    delete (globalThis as { Worker?: unknown }).Worker;
  });

  it.each([false, true])('load() with shared: %s ends in unsupported_host', async (shared) => {
    vi.stubGlobal('navigator', { locks: new FakeLocks() });
    await expect(QSF.load(URL_, { shared })).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'unsupported_host' },
      message: expect.stringContaining('as in shared and service workers') as string,
    });
  });
});
