// Every function and constructor that the package exports, with arguments of wrong kinds: no error but the package's own.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { embeddingModel, languageModel } from '../../web/src/ai-sdk.js';
import { openaiFetch } from '../../web/src/fetch.js';
import { Conversation, QSF, QSFError } from '../../web/src/index.js';
import { digestsIn, serveOffline } from '../../web/src/offline.js';
import { promptApi } from '../../web/src/prompt-api.js';
import { messageWith, nearest, passagesOf } from '../../web/src/retrieval.js';
import { installFakeWorker, removeFakeWorker, result } from './fake-worker.js';

const ADDRESS = 'https://example.org/model.qsf';
const wrong: unknown[] = [null, 5, {}, 'text', [], [null], true, Symbol('x'), () => 0, { a: null }];

let llm: QSF;
beforeEach(async () => {
  const backend = installFakeWorker();
  backend.answers.next = async () => ({ ok: true, value: { pieces: [], result } });
  vi.stubGlobal('addEventListener', () => undefined); // of a service worker
  llm = await QSF.load(ADDRESS);
});
afterEach(removeFakeWorker);

const offline = { version: '1', files: ['a.js'] };
const data = { version: 1, messages: [] } as const;

/** The calls by their names. `value` takes the place of one argument. */
const calls: Record<string, (value: never) => unknown> = {
  'QSF.load(…)': (value) => QSF.load(value),
  'QSF.load(address, …)': (value) => QSF.load(ADDRESS, value),
  'new QSF(…)': (value) => new (QSF as unknown as new (host: unknown) => QSF)(value),
  'QSF.cache.state(…)': (value) => QSF.cache.state(value),
  'QSF.cache.remove(…)': (value) => QSF.cache.remove(value),
  'QSF.cache.prune(…)': (value) => QSF.cache.prune(value),
  'QSF.saved.get(…)': (value) => QSF.saved.get(value),
  'QSF.saved.remove(…)': (value) => QSF.saved.remove(value),
  'new QSFError(…)': (value) => new QSFError(value, 'x').mayPass,
  'new QSFError(code, …)': (value) => new QSFError('internal', value).number,
  'new QSFError(code, sentence, …)': (value) => new QSFError('internal', 'x', value).at('y'),
  'new Conversation(…)': (value) => new Conversation(value).messages,
  'new Conversation(model, …)': (value) => new Conversation(llm, value).messages,
  'Conversation.from(…)': (value) => Conversation.from(value, data),
  'Conversation.from(model, …)': (value) => Conversation.from(llm, value),
  'Conversation.from(model, data, …)': (value) => Conversation.from(llm, data, value),
  'generate(…)': (value) => llm.generate(value).text(),
  'generate(text, …)': (value) => llm.generate('a', value).text(),
  'chat(…)': (value) => llm.chat(value).text(),
  'chat(text, …)': (value) => llm.chat('a', value).text(),
  'render(…)': (value) => llm.render(value),
  'render(text, …)': (value) => llm.render('a', value),
  'conversation(…)': (value) => llm.conversation(value).messages,
  'conversation().send(…)': (value) => llm.conversation().send(value).text(),
  'conversation().send(text, …)': (value) => llm.conversation().send('a', value).text(),
  'conversation().edit(…)': (value) =>
    llm
      .conversation({ messages: [{ role: 'user' }] })
      .edit(value, 'a')
      .text(),
  'conversation().edit(0, …)': (value) =>
    llm
      .conversation({ messages: [{ role: 'user' }] })
      .edit(0, value)
      .text(),
  'conversation().regenerate(…)': (value) => llm.conversation().regenerate(value).text(),
  'conversation().fork(…)': (value) => llm.conversation().fork(value),
  'save(…)': (value) => llm.save(value),
  'restore(…)': (value) => llm.restore(value),
  'restore(blob, …)': (value) => llm.restore(new Blob([]), value),
  'rewind(…)': (value) => llm.rewind(value),
  'rewind(0, …)': (value) => llm.rewind(0, value),
  'embed(…)': (value) => llm.embed(value),
  'embed(text, …)': (value) => llm.embed('a', value),
  'rerank(…)': (value) => llm.rerank(value, ['a']),
  'rerank(query, …)': (value) => llm.rerank('a', value),
  'rerank(query, texts, …)': (value) => llm.rerank('a', ['a'], value),
  'tokenize(…)': (value) => llm.tokenize(value),
  'tokenize(text, …)': (value) => llm.tokenize('a', value),
  'detokenize(…)': (value) => llm.detokenize(value),
  'detokenize(tokens, …)': (value) => llm.detokenize([1], value),
  'chat.completions.create(…)': (value) => llm.chat.completions.create(value),
  'completions.create(…)': (value) => llm.completions.create(value),
  'embeddings.create(…)': (value) => llm.embeddings.create(value),
  'digestsIn(…)': (value) => digestsIn(value),
  'serveOffline(…)': (value) => serveOffline(value),
  'serveOffline({ version })': (value) => serveOffline({ ...offline, version: value }),
  'serveOffline({ files })': (value) => serveOffline({ ...offline, files: value }),
  'serveOffline({ integrity })': (value) => serveOffline({ ...offline, integrity: value }),
  'serveOffline({ name })': (value) => serveOffline({ ...offline, name: value }),
  'serveOffline({ isolate })': (value) => serveOffline({ ...offline, isolate: value }),
  'openaiFetch(…)': (value) => openaiFetch(value),
  'openaiFetch({ name: … })': (value) => openaiFetch({ a: value }),
  'languageModel(…)': (value) => languageModel(value),
  'languageModel(model, …)': (value) => languageModel(llm, value),
  'embeddingModel(…)': (value) => embeddingModel(value),
  'embeddingModel(model, …)': (value) => embeddingModel(llm, value),
  'promptApi(…)': (value) => promptApi(value),
  'passagesOf(…)': (value) => passagesOf(value),
  'passagesOf(text, …)': (value) => passagesOf('a', value),
  'nearest(…)': (value) => nearest(value, [[1]]),
  'nearest(query, …)': (value) => nearest([1], value),
  'nearest(query, vectors, …)': (value) => nearest([1], [[1]], value),
  'messageWith(…)': (value) => messageWith(value, []),
  'messageWith(question, …)': (value) => messageWith('a', value),
};

/** The calls that take no wrong value at all: each of the values must be refused. */
const strict = ['serveOffline(…)', 'openaiFetch(…)', 'languageModel(…)', 'embeddingModel(…)'];

describe('a wrong argument', () => {
  it.each(Object.keys(calls))('%s', async (name) => {
    for (const value of wrong) {
      let error: unknown;
      try {
        await calls[name]!(value as never);
      } catch (thrown) {
        error = thrown;
      }
      if (error !== undefined || strict.includes(name))
        expect(error, `${name} with ${typeof value}`).toBeInstanceOf(QSFError);
    }
  });
});

it.each<[() => unknown, string]>([
  [() => serveOffline(null as never), 'the argument of serveOffline() is null; it must be an object'],
  [() => serveOffline({ ...offline, file: [] } as never), 'serveOffline() has no option "file"; did you mean files?'],
  [() => serveOffline({ ...offline, files: [5] as never }), 'files is a list; it must be a list of addresses'],
  [() => serveOffline({ ...offline, version: 1 as never }), 'version is 1; it must be a text'],
  [() => openaiFetch(null as never), 'the model of openaiFetch() is null; it must be one that QSF.load() gave'],
  [() => openaiFetch({ a: 5 as never }), 'the model of openaiFetch() is 5; it must be one that QSF.load() gave'],
  [() => languageModel({} as never), 'the model of languageModel() is an object; it must be one that QSF.load() gave'],
  [
    () => promptApi('a' as never),
    'the model of promptApi() is "a"; it must be one that QSF.load() gave, or a function',
  ],
])('the sentence of %s', (call, message) => {
  expect(call).toThrow(expect.objectContaining({ name: 'QSFError', code: 'bad_argument', message }));
});
