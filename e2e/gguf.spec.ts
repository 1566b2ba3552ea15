// GGUF files in a real browser: run as they are, kept as .qsf files, and gone on with after a killed tab.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convertToGguf, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { TestServer } from './server.js';
import type { LoadOptions } from '../web/src/index.js';

const MiB = 1024 * 1024;
const MAKER = 'qsf-maker.wasm';
const PROMPT = 'Once upon a time';
const options = { memory: 16 * MiB };
const generation = { maxTokens: 24, temperature: 0, logitsHash: true };
const nativeOptions = ['--prompt', PROMPT, '--max-tokens', '24', '--temperature', '0'];

let pages: TestServer;
let browser: Browser;
let gguf: Buffer;
let qsf: Buffer;
let receipt: Receipt;
let tab: Tab;

test.beforeAll(async () => {
  ({ gguf, qsf } = await convertToGguf('q8_0'));
  receipt = await runNatively(qsf, 16, nativeOptions);
  const ofGguf = await runNatively(gguf, 16, nativeOptions);
  expect(ofGguf.logits_hash).toBe(receipt.logits_hash);
  pages = await TestServer.start();
  browser = await launchChromium();
});
test.afterAll(async () => {
  await browser.close();
  await pages.stop();
});
test.beforeEach(async () => {
  pages.calm();
  tab = await browser.open(pages.origin);
});
test.afterEach(() => tab.close());

async function expectTwin(name: string, twin = receipt) {
  const { text, stats } = await tab.call('generate', name, PROMPT, generation);
  expect(text).toBe(twin.text);
  expect(stats.generation!.tokens).toEqual(twin.generated_tokens);
  expect(stats.generation!.logitsHash).toBe(twin.logits_hash);
  return stats;
}

test('a GGUF file gives the text of its .qsf file, and is that file the second time', async () => {
  const url = pages.serve('model.gguf', gguf);
  await tab.call('load', 'a', url, options);
  const first = await expectTwin('a');
  expect(first.model.madeFrom).toBe('GGUF');
  expect(first.io.cacheState).toBe('complete');
  expect(pages.loaded).toContain(MAKER);
  await tab.call('close', 'a');
  pages.calm();
  await tab.call('load', 'b', url, options);
  const second = await expectTwin('b');
  expect(second.model.madeFrom).toBeUndefined();
  expect(second.model.hash).toBe(receipt.model.hash);
  expect(second.memory.maker).toBe(0);
  expect(pages.sent).toBe(0);
  expect(pages.loaded).toContain('worker.js');
  expect(pages.loaded).not.toContain(MAKER);
  await tab.call('close', 'b');
});

test('a GGUF file whose matrices get another type is kept next to the one with its own', async () => {
  const { qsf: rounded } = await convertToGguf('q8_0', '--quant-type', 'q4_0');
  const twin = await runNatively(rounded, 16, nativeOptions);
  expect(twin.logits_hash).not.toBe(receipt.logits_hash);
  const url = pages.serve('rounded.gguf', gguf);
  const typed: LoadOptions = { ...options, quantType: 'q4_0' };
  await tab.call('load', 'a', url, typed);
  expect((await expectTwin('a', twin)).io.cacheState).toBe('complete');
  await tab.call('close', 'a');
  await tab.call('load', 'a', url, options);
  await expectTwin('a');
  await tab.call('close', 'a');
  const kept = (await tab.call('cacheList')).filter((entry) => entry.url === url);
  expect(kept).toHaveLength(2);
  expect(kept).toContainEqual(expect.objectContaining({ quantType: 'q4_0', total: rounded.length, complete: true }));
  pages.calm();
  await tab.call('load', 'a', url, typed);
  expect((await expectTwin('a', twin)).model.hash).toBe(twin.model.hash);
  expect(pages.sent).toBe(0);
  await tab.call('close', 'a');
});

test('as a File it gives the same text, resident and streamed', async () => {
  const url = pages.serve('model.gguf', gguf);
  for (const streamAll of [false, true]) {
    const { model } = await tab.call('loadFile', 'a', url, { ...options, streamAll });
    expect(model.madeFrom).toBe('GGUF');
    const { io } = await expectTwin('a');
    if (streamAll)
      expect(io.cache).toBeGreaterThan(io.blob); // a copy, which later passes read
    else expect(io.cache).toBe(0);
    await tab.call('close', 'a');
  }
});

test('a page with a .qsf file does not load the maker', async () => {
  await tab.call('load', 'a', pages.serve('model.qsf', qsf), options);
  await expectTwin('a');
  expect(pages.loaded).toContain('worker.js');
  expect(pages.loaded).not.toContain(MAKER);
  await tab.call('close', 'a');
});

test('a file that cannot be made is refused before its weights are fetched', async () => {
  const unknown = Buffer.from(gguf);
  unknown.write('lllma', unknown.indexOf('llama'));
  const cases: [string, Buffer, Partial<LoadOptions>, object][] = [
    ['unknown.gguf', unknown, {}, { code: 'unsupported', message: expect.stringContaining('lllma') as unknown }],
    ['short.gguf', gguf.subarray(0, gguf.length / 2), {}, { code: 'truncated' }],
    ['text.gguf', Buffer.from('<!doctype html><title>404</title>'.padEnd(4096)), {}, { code: 'bad_magic' }],
    [
      'type.gguf',
      gguf,
      { quantType: 'iq1_s' as 'q4_0' },
      { code: 'bad_argument', message: expect.stringContaining('q4_0') as unknown },
    ],
    ['typed.qsf', qsf, { quantType: 'q4_0' }, { code: 'bad_argument' }],
    ['digest.gguf', gguf, { sha256: '0'.repeat(64) }, { code: 'bad_argument' }],
    ['large.gguf', gguf, { memory: 2 * MiB, maxSeqLen: 512, kv: 'f32' }, { code: 'budget_too_small' }],
  ];
  for (const [name, bytes, other, error] of cases) {
    pages.calm();
    const loading = tab.call('load', 'a', pages.serve(name, bytes), { ...options, ...other });
    await expect(loading, name).rejects.toMatchObject({ name: 'QSFError', ...error });
    expect(pages.sent, name).toBeLessThan(2 * MiB);
  }
});

test('without the cache it is streamed from the server', async () => {
  const url = pages.serve('streamed.gguf', gguf);
  await tab.call('load', 'a', url, { ...options, cache: false, streamAll: true });
  const stats = await expectTwin('a');
  expect(stats.memory.maker).toBeGreaterThan(0);
  await tab.call('close', 'a');
});

test('a killed visit is gone on with', async () => {
  const url = pages.serve('killed.gguf', gguf, { bytesPerSecond: 600_000 });
  await tab.call('beginLoad', url, options);
  const kept = async () => (await tab.call('cacheState', url)).bytes;
  await expect.poll(kept, { timeout: 60_000 }).toBeGreaterThan(2 * MiB);
  await tab.close();
  pages.serve('killed.gguf', gguf);
  pages.calm();
  tab = await browser.open(pages.origin);
  await tab.call('load', 'a', url, options);
  await expectTwin('a');
  expect(pages.sent).toBeLessThan(gguf.length - MiB / 4);
  await tab.call('close', 'a');
});

test('a repository of the Hub gives the largest file that fits, from the store that it redirects to', async () => {
  const hub = await TestServer.start();
  const own = await TestServer.start([hub.origin, pages.origin]);
  own.hub = hub.origin;
  const mine = await browser.open(own.origin);
  const files = { 'big-Q8_0.gguf': 400 * MiB, 'small/a b.gguf': gguf.length, 'mmproj.gguf': 4 * MiB, 'config.json': 9 };
  const siblings = Object.entries(files).map(([rfilename, size]) => ({ rfilename, size }));
  hub.answers.set('/api/models/owner/name/revision/main', { sha: '0123456', siblings });
  hub.answers.set('/owner/name/resolve/main/small/a%20b.gguf', pages.serve('stored.gguf', gguf));
  const { warnings } = await mine.call('load', 'a', 'hf:owner/name', options);
  expect(warnings.filter((warning) => warning.startsWith('hf:'))).toEqual([
    expect.stringMatching(/^hf:owner\/name: small\/a b\.gguf of [\d.]+ MiB is read, the largest of 2 that fits in the/),
  ]);
  const { text, stats } = await mine.call('generate', 'a', PROMPT, generation);
  expect({ text, hash: stats.generation!.logitsHash }).toEqual({ text: receipt.text, hash: receipt.logits_hash });
  await mine.call('close', 'a');

  await hub.stop();
  pages.calm();
  await mine.call('load', 'b', 'hf:owner/name', options);
  expect(pages.sent).toBe(0);
  expect((await mine.call('generate', 'b', PROMPT, generation)).text).toBe(receipt.text);
  await mine.call('close', 'b');
  await mine.close();
  await own.stop();
});
