// The demo's search of files, except its page: texts of files, passages that fit a model, the search, the prompt, the tool.
import { describe, expect, it, vi } from 'vitest';

import { messageFitting } from '../../web/demo/src/retrieval/answer.js';
import { rememberChoice } from '../../web/demo/src/retrieval/embedder.js';
import type { Embedder } from '../../web/demo/src/retrieval/embedder.js';
import { Library, fittingPassages } from '../../web/demo/src/retrieval/library.js';
import { readFile, textOf } from '../../web/demo/src/retrieval/read-file.js';
import { memoryStore } from '../../web/demo/src/retrieval/store.js';
import { searchFiles } from '../../web/demo/src/retrieval/tool.js';
import { sliced } from '../../web/demo/src/slices.js';
import { runTool } from '../../web/demo/src/tools.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';

const utf8 = (text: string) => new TextEncoder().encode(text);
const textOfFile = (name: string, bytes: Uint8Array) => sliced(textOf(name, bytes));
const never = new AbortController().signal;

describe('the text of a file', () => {
  it('is itself, and a line for each value of JSON', async () => {
    expect(await textOfFile('a.md', utf8('\ufeff# Tea\r\n\r\nGreen.'))).toBe('# Tea\n\nGreen.');
    expect(await textOfFile('a.txt', Uint8Array.of(0xff, 0xfe, 0x61, 0, 0xe9, 0))).toBe('aé');
    const json = { tea: [{ name: 'Green', cups: 2 }, null], 'at home': true };
    expect(await textOfFile('a.json', utf8(JSON.stringify(json)))).toBe(
      'tea[0].name: Green\ntea[0].cups: 2\ntea[1]: null\nat home: true',
    );
    expect(await textOfFile('a.json', utf8('"only"'))).toBe('only');
    expect(await textOfFile('a.json', utf8('{ broken'))).toBe('{ broken');
    expect(await textOfFile('a.json', utf8(`${'['.repeat(5000)}1${']'.repeat(5000)}`))).toMatch(/^(\[0\])+: 1$/);
    // More members than a call may have arguments.
    const wide = Array.from({ length: 150_000 }, () => 1);
    expect(await textOfFile('a.json', utf8(JSON.stringify(wide)))).toMatch(/^\[0\]: 1\n[^]*\[149999\]: 1$/);
    expect(await readFile(new File(['Hello'], 'a.txt'))).toBe('Hello');
  });

  it('is read in steps of bounded work', () => {
    const steps = (name: string, bytes: Uint8Array) => [...textOf(name, bytes)].length;
    expect(steps('a.txt', utf8('a sentence. '.repeat(2 ** 16)))).toBe(12); // 64 KiB each
    expect(steps('a.json', utf8(JSON.stringify(Array.from({ length: 6400 }, () => 1))))).toBeGreaterThan(100);
  });

  it('keeps letters that two steps share', async () => {
    const text = `a${'é'.repeat(2 ** 16)}`;
    expect(await textOfFile('a.txt', utf8(text))).toBe(text);
  });

  it.each<[string, Uint8Array<ArrayBuffer>, string]>([
    [
      'a.pdf',
      utf8('%PDF-1.7'),
      'a.pdf is a PDF. Text, Markdown, HTML and JSON can be read; other documents must be saved',
    ],
    ['a.docx', utf8('PK\x03\x04'), 'a.docx is a ZIP archive or a document of an office program. '],
    ['a.png', Uint8Array.of(0x89, 0x50, 0x4e, 0x47), 'a.png is a picture. '],
    ['a.gguf', utf8('GGUF'), 'a.gguf is a model: choose it among the models. '],
    ['a.bin', Uint8Array.of(0xc3, 0x28), 'a.bin is no text in UTF-8. '],
    ['a.bin', utf8('a\0b'), 'a.bin is no text in UTF-8. '],
    ['a.txt', utf8(' \n'), 'a.txt has no text'],
    ['a.log', new Uint8Array(4 * 2 ** 20 + 1), 'a.log has 4.0 MiB; a file may have 4.0 MiB'],
  ])('is refused with the reason (%s)', async (name, bytes, sentence) => {
    await expect(readFile(new File([bytes], name))).rejects.toThrow(sentence);
  });
});

/** A model whose vector of a text counts some words, with a token for each letter. */
function embedder(maxSeqLen = 4096): Embedder & { asked: string[] } {
  const words = ['tea', 'sea', 'king'];
  const asked: string[] = [];
  const vector = (text: string) => Float32Array.from(words, (word) => text.split(word).length - 1);
  const llm = {
    embed: async (texts: string | string[]) => {
      asked.push(...(Array.isArray(texts) ? texts : [texts]));
      return Array.isArray(texts) ? texts.map(vector) : vector(texts);
    },
    stats: async () => ({ plan: { maxSeqLen } }),
    tokenize: async (text: string) => Array.from(text, () => 1),
  };
  return { key: 'words', llm: llm as never, prefixes: { query: 'q: ', passage: 'p: ' }, asked };
}

describe('passages', () => {
  it('are divided until each fits the context of the model', async () => {
    const text = 'Some words of a long text. '.repeat(60);
    const passages = await fittingPassages(text, embedder(128));
    expect(passages.length).toBeGreaterThan(10);
    for (const { start, end, text: part } of passages) {
      expect(part).toBe(text.slice(start, end));
      expect(part.length + 3).toBeLessThanOrEqual(120);
    }
  });
});

describe('the library', () => {
  const found = async (library: Library, question: string, model: Embedder) =>
    (await library.find(question, model, 2)).map(({ file, text, score }) => [
      file.name,
      text,
      Number(score.toFixed(3)),
    ]);

  it('finds the nearest passages, and keeps vectors for each model', async () => {
    const store = memoryStore();
    const library = await Library.open(store);
    await library.add('one.txt', 20, 'The king drinks tea.');
    await library.add('two.txt', 20, 'The sea is wide.');
    const model = embedder();
    await library.use(model.key);
    const steps: string[] = [];
    for (let file = library.missing; file; file = library.missing)
      await library.embed(file, model, never, (done, total) => steps.push(`${file!.name} ${done}/${total}`));
    expect(steps).toEqual(['one.txt 0/1', 'two.txt 0/1']);
    expect(model.asked).toEqual(['p: The king drinks tea.', 'p: The sea is wide.']);
    expect(await found(library, 'sea', model)).toEqual([
      ['two.txt', 'The sea is wide.', 1],
      ['one.txt', 'The king drinks tea.', 0],
    ]);
    expect(model.asked.at(-1)).toBe('q: sea');

    const again = await Library.open(store);
    await again.use(model.key);
    expect(again.missing).toBeUndefined();
    expect((await found(again, 'king', model))[0]).toEqual(['one.txt', 'The king drinks tea.', 0.707]);
    await again.use('another model');
    expect(again.missing?.name).toBe('one.txt');
    expect(await found(again, 'king', model)).toEqual([]);
  });

  it('replaces a file by one of the same name, and forgets a removed one', async () => {
    const store = memoryStore();
    const library = await Library.open(store);
    const model = embedder();
    await library.use(model.key);
    await library.add('a.txt', 3, 'tea');
    await library.embed(library.missing!, model, never, () => undefined);
    await library.add('a.txt', 3, 'sea');
    expect(library.files.map(({ text }) => text)).toEqual(['sea']);
    expect(library.missing?.text).toBe('sea');
    expect(await store.vectors(model.key)).toEqual([]);
    await library.remove(library.files[0]!.id);
    expect([library.files, await store.files()]).toEqual([[], []]);
  });

  it('keeps nothing of a file that is removed while its vectors are made', async () => {
    const store = memoryStore();
    const library = await Library.open(store);
    const model = embedder();
    await library.use(model.key);
    await library.add('a.txt', 3, 'tea');
    const file = library.missing!;
    const work = library.embed(file, model, never, () => undefined);
    await library.add('a.txt', 3, 'sea'); // replaces it
    await work;
    expect(await store.vectors(model.key)).toEqual([]);
    expect(library.passages(file.id)).toBeUndefined();
  });

  it('finds passages also if the store cannot be read', async () => {
    const fail = () => Promise.reject(new Error('a damaged database'));
    const model = embedder();
    const unread = await Library.open({ ...memoryStore(), keeps: true, files: fail });
    const withoutVectors = await Library.open({ ...memoryStore(), keeps: true, vectors: fail });
    expect([unread.keeps, withoutVectors.keeps]).toEqual([false, true]);
    for (const library of [unread, withoutVectors]) {
      await library.use(model.key);
      await library.add('a.txt', 3, 'tea');
      await library.embed(library.missing!, model, never, () => undefined);
      expect(await found(library, 'tea', model)).toEqual([['a.txt', 'tea', 1]]);
    }
  });

  it('keeps nothing of a file that was aborted', async () => {
    const library = await Library.open(memoryStore());
    const model = embedder();
    await library.use(model.key);
    await library.add('a.txt', 3, 'tea '.repeat(2000));
    const abort = new AbortController();
    const work = library.embed(library.missing!, model, abort.signal, (done) => {
      if (done > 3) abort.abort();
    });
    await expect(work).rejects.toThrow(/abort/i);
    expect(library.passages(library.files[0]!.id)).toBeUndefined();
  });
});

it('the prompt of an answer has as many passages as the context has room for', async () => {
  const llm = {
    render: async ([message]: { content: string }[]) => message!.content,
    tokenize: embedder().llm.tokenize,
    stats: async () => ({ plan: { maxSeqLen: 1200 } }),
  };
  const hits = ['a', 'b', 'c'].map((name) => ({ file: { name } as never, text: name.repeat(250), score: 1 }));
  const { messages, used } = await messageFitting(llm as never, 'Why?', hits);
  expect(used).toBe(2);
  expect(messages).toEqual([
    { role: 'user', content: expect.stringMatching(/\[2\] b\nb+\n\nQuestion: Why\?$/) as string },
  ]);
  const little = { ...llm, stats: async () => ({ plan: { maxSeqLen: 64 } }) };
  expect((await messageFitting(little as never, 'Why?', hits)).used).toBe(0);
});

describe('the tool of the chat', () => {
  it('says what is missing', async () => {
    expect(await runTool('search_files', { question: 'tea' })).toMatch(
      /^Error: there are no files to search; .*Ask your files/,
    );
  });

  it('opens the model of the page with its memory, searches, and closes it', async () => {
    const backend = installFakeWorker();
    const source = 'https://models.test/embed.gguf';
    const kept = new Map<string, string>();
    vi.stubGlobal('localStorage', {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => kept.set(key, value),
    });
    try {
      rememberChoice({ source, memory: 64 * 2 ** 20 });
      const store = memoryStore();
      const library = await Library.open(store);
      await library.add('long.txt', 0, 'A long text of tea.');
      await library.add('short.txt', 0, 'Tea.');
      // The fake worker's vector of a text is its length and a half.
      for (const { id, text } of library.files)
        await store.putVectors({
          ...{ file: id, model: source, bounds: Uint32Array.of(0, text.length), dim: 2 },
          values: text === 'Tea.' ? Float32Array.of(0, 1) : Float32Array.of(1, 0),
        });
      expect(await searchFiles('What is tea?', undefined, store)).toBe(
        'long.txt:\nA long text of tea.\n\nshort.txt:\nTea.',
      );
      expect(backend.loads).toMatchObject([{ source, memory: 64 * 2 ** 20 }]);
      expect(backend.embeds).toMatchObject([{ texts: ['What is tea?'], normalize: true }]);
      expect(backend.calls.at(-1)).toBe('close');
    } finally {
      removeFakeWorker();
    }
  });
});
