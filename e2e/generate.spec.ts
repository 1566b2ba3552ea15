// Generations in a real browser: stopping them, reading them slowly, going on after them, and what is refused.
import { expect, test } from '@playwright/test';

import { launchChromium } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { convert, runNatively } from './native.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPT = 'Once upon a time';
const options = { memory: 16 * MiB };
const sampled = { maxTokens: 40, temperature: 0.9, seed: 5, logitsHash: true };
const greedy = { maxTokens: 40, temperature: 0 };

let pages: TestServer;
let browser: Browser;
let bytes: Buffer;
let url: string;
let tab: Tab;

test.beforeAll(async () => {
  bytes = await convert('8bit');
  pages = await TestServer.start();
  url = pages.serve('model.qsf', bytes);
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
test.afterEach(async () => {
  await tab.close();
});

/** Tokens, text and logits of a generation by an instance that did nothing before. */
async function fresh() {
  await tab.call('load', 'fresh', url, options);
  const { text, stats } = await tab.call('generate', 'fresh', PROMPT, sampled);
  await tab.call('close', 'fresh');
  return { text, tokens: stats.generation!.tokens, logitsHash: stats.generation!.logitsHash };
}

async function expectFresh(name: string): Promise<void> {
  const expected = await fresh();
  const { text, stats } = await tab.call('generate', name, PROMPT, sampled);
  expect({ text, tokens: stats.generation!.tokens, logitsHash: stats.generation!.logitsHash }).toEqual(expected);
}

test('a conversation follows a template and a schema, and a turn computes only what is new', async () => {
  const template =
    "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '\n' }}{% endfor %}{{ 'assistant:' if add_generation_prompt }}";
  await tab.call('load', 'a', url, { memory: 32 * MiB });
  const hello = [{ role: 'user', content: 'Tell me of a king and of his three sons.' }];
  const first = await tab.call('chat', 'a', hello, { ...greedy, template });
  expect(first.rendered).toBe(`user:${hello[0]!.content}\nassistant:`);
  const { text } = await tab.call('generate', 'a', first.rendered, greedy);
  expect(first.text).toBe(text);
  const turns = [...hello, { role: 'assistant', content: first.text }, { role: 'user', content: 'And then?' }];
  await tab.call('chat', 'a', hello, { ...greedy, template });
  const second = await tab.call('chat', 'a', turns, { ...greedy, template });
  expect(second.promptTokens).toBeGreaterThan(first.promptTokens);
  expect(second.promptTokens - second.reusedTokens).toBeLessThan(first.promptTokens);
  const schema = {
    type: 'object',
    properties: { sons: { enum: ['one', 'two', 'three'] } },
    required: ['sons'],
    additionalProperties: false,
  };
  const held = await tab.call('chat', 'a', hello, {
    ...{ template, seed: 3, maxTokens: 200 },
    responseFormat: { type: 'json_schema', schema },
  });
  expect(['one', 'two', 'three']).toContain((JSON.parse(held.text) as { sons: string }).sons);
  await expect(tab.call('chat', 'a', hello, {})).rejects.toMatchObject({ code: 'unsupported' });
});

test("OpenAI's shapes have the text of chat(), whole, in chunks and by await", async () => {
  const template = '{% for m in messages %}{{ m.role ~ ": " ~ m.content ~ "\\n" }}{% endfor %}';
  await tab.call('load', 'a', url, { memory: 32 * MiB });
  const messages = [{ role: 'user', content: 'Tell me of a king.' }];
  const { text, tokens, position, end } = await tab.call('chat', 'a', messages, { ...greedy, template });
  const params = { messages, temperature: 0, max_tokens: greedy.maxTokens, chat_template: template };
  const { whole, chunks, awaited } = await tab.call('complete', 'a', params, { ...greedy, template });
  expect(awaited).toBe(text);
  expect(whole.choices[0]!.message.content).toBe(text);
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(text);
  const completion_tokens = tokens.length + (end === 'eos' ? 1 : 0);
  expect(whole.usage).toMatchObject({ completion_tokens, total_tokens: position });
  expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens, total_tokens: position });
});

for (const { title, memory } of [
  { title: 'from memory', memory: 16 },
  { title: 'while weights are streamed', memory: 4 },
]) {
  test(`abort ends a generation at once, and the next is as from a fresh instance (${title})`, async () => {
    await tab.call('load', 'a', url, { memory: memory * MiB });
    const long = { ...greedy, maxTokens: 400, ignoreEos: true };
    const aborted = await tab.call('abortGeneration', 'a', PROMPT, long, 5);
    expect(aborted.reason.name).toBe('AbortError');
    expect(aborted.atOnce).toBe(true);
    expect(aborted.end).toBe('cancelled');
    expect(aborted.before).toBeLessThan(400);
    // Nothing is computed any more.
    expect(aborted.after).toBe(aborted.before);
    await expectFresh('a');
  });
}

test('abort ends a generation that waits for the network at once, and the next is as from a fresh instance', async () => {
  const slow = pages.serve('slow.qsf', bytes, { bytesPerSecond: 50_000 });
  await tab.call('load', 'a', slow, { ...options, background: true });
  const { atOnce, reason, stats } = await tab.call('abortWaiting', 'a', PROMPT, sampled, 300);
  expect(reason.name).toBe('AbortError');
  expect(atOnce).toBe(true);
  expect(stats.generation).toMatchObject({ end: 'cancelled', tokens: [] });
  pages.model('slow.qsf').bytesPerSecond = 0;
  await expectFresh('a');
});

test('abort ends a load at once, and the next load succeeds', async () => {
  const slow = pages.serve('aborted.qsf', bytes, { bytesPerSecond: 100_000 });
  const { atOnce, reason } = await tab.call('abortLoad', slow, options, 500);
  expect(reason.name).toBe('AbortError');
  expect(atOnce).toBe(true);
  pages.model('aborted.qsf').bytesPerSecond = 0;
  await tab.call('load', 'a', slow, options);
  await expectFresh('a');
});

test('leaving the loop stops the computation', async () => {
  await tab.call('load', 'a', url, options);
  const { end } = await tab.call('breakGeneration', 'a', PROMPT, { ...greedy, maxTokens: 400, ignoreEos: true }, 3);
  expect(end).toBe('cancelled');
  await expectFresh('a');
});

test('a generation goes on from the text that was shown when its loop was left', async () => {
  await tab.call('load', 'a', url, options);
  const whole = await tab.call('generate', 'a', PROMPT, { ...greedy, maxTokens: 40, ignoreEos: true });
  const shown = await tab.call('breakGeneration', 'a', PROMPT, { ...greedy, maxTokens: 40, ignoreEos: true }, 3);
  const how = { ...greedy, maxTokens: 40 - shown.tokens.length, ignoreEos: true, continue: true };
  const rest = await tab.call('generate', 'a', '', how);
  expect(shown.text + rest.text).toBe(whole.text);
});

test('a slow reader holds the computation back and loses nothing', async () => {
  await tab.call('load', 'a', url, options);
  const whole = await tab.call('generate', 'a', PROMPT, { ...greedy, maxTokens: 80, ignoreEos: true });
  const slow = await tab.call('slowly', 'a', PROMPT, { ...greedy, maxTokens: 80, ignoreEos: true }, 15);
  expect(slow.text).toBe(whole.text);
  // A batch of pieces at the page and another in the worker.
  expect(slow.ahead).toBeLessThan(48);
});

test('a generation can be continued', async () => {
  await tab.call('load', 'a', url, options);
  const whole = await tab.call('generate', 'a', PROMPT, { ...greedy, ignoreEos: true });
  const first = await tab.call('generate', 'a', PROMPT, { ...greedy, maxTokens: 15, ignoreEos: true });
  const rest = await tab.call('generate', 'a', '', { ...greedy, maxTokens: 25, ignoreEos: true, continue: true });
  expect([...first.stats.generation!.tokens, ...rest.stats.generation!.tokens]).toEqual(whole.stats.generation!.tokens);
});

test('a saved generation goes on after a reload, and natively', async () => {
  await tab.call('load', 'a', url, options);
  const how = { ...greedy, ignoreEos: true };
  const whole = await tab.call('generate', 'a', PROMPT, how);
  await tab.call('generate', 'a', PROMPT, { ...how, maxTokens: 15 });
  const messages = [{ role: 'user', content: PROMPT }];
  const file = Buffer.from(await tab.call('save', 'a', { messages, name: 'a story/1' }), 'base64');
  await tab.close();
  tab = await browser.open(pages.origin);
  await tab.call('load', 'a', url, options);
  expect(await tab.call('savedList')).toMatchObject([{ name: 'a story/1', bytes: file.length }]);
  expect(await tab.call('restore', 'a', 'a story/1')).toMatchObject({ messages });
  const rest = await tab.call('generate', 'a', '', { ...how, maxTokens: 25, continue: true });
  const tokens = whole.stats.generation!.tokens.slice(15);
  expect(rest.stats.generation!.tokens).toEqual(tokens);
  // Natively it is a conversation's, so the chat template that the model lacks is asked for.
  await expect(runNatively(bytes, 16, ['--prompt', '', '--max-tokens', '25'], file)).rejects.toThrow(
    /has a conversation/,
  );
  const plain = Buffer.from(await tab.call('save', 'a', { name: 'a story/1' }), 'base64');
  const native = await runNatively(bytes, 16, ['--prompt', '', '--temperature', '0', '--max-tokens', '5'], plain);
  await tab.call('restore', 'a', 'a story/1');
  const again = await tab.call('generate', 'a', '', { ...greedy, maxTokens: 5, continue: true });
  expect(again.stats.generation!.tokens).toEqual(native.generated_tokens);
  await tab.call('savedRemove', 'a story/1');
  expect(await tab.call('savedList')).toEqual([]);
});

test('a stop string ends the text before it', async () => {
  await tab.call('load', 'a', url, options);
  const whole = await tab.call('generate', 'a', PROMPT, greedy);
  const stop = whole.text.slice(20, 26);
  const cut = await tab.call('generate', 'a', PROMPT, { ...greedy, stop });
  expect(cut.text).toBe(whole.text.slice(0, whole.text.indexOf(stop)));
  expect(cut.stats.generation!.end).toBe('stop');
});

test('token ids are taken as they are, and text becomes the ids that the native engine uses', async () => {
  const native = await runNatively(url, 16, ['--prompt', PROMPT, '--max-tokens', '20', '--temperature', '0']);
  await tab.call('load', 'a', url, options);
  const { stats } = await tab.call('generate', 'a', native.prompt_tokens, { ...greedy, maxTokens: 20 });
  expect(stats.generation!.tokens).toEqual(native.generated_tokens);
  const ids = await tab.call('tokenize', 'a', PROMPT);
  expect(native.prompt_tokens.slice(-ids.length)).toEqual(ids);
  expect((await tab.call('detokenize', 'a', ids)).trim()).toBe(PROMPT);
  expect(await tab.call('tokenize', 'a', '')).toEqual([]);
  // More text than fits beside the arena is refused and does no harm.
  await expect(tab.call('tokenize', 'a', 'long '.repeat(500_000))).rejects.toMatchObject({ name: 'QSFError' });
  await expectFresh('a');
});

test('zero tokens compute the prompt only', async () => {
  await tab.call('load', 'a', url, options);
  const { text, stats } = await tab.call('generate', 'a', PROMPT, { maxTokens: 0, logitsHash: true });
  expect(text).toBe('');
  expect(stats.generation).toMatchObject({ tokens: [], end: 'length' });
  expect(stats.generation!.logitsHash).toMatch(/^[0-9a-f]{64}$/);
  expect(stats.position).toBe(stats.generation!.promptTokens);
});

test('the memory map adds up to the budget, whatever the budget', async () => {
  for (const memory of [4 * MiB, 5 * MiB + 1, 64 * MiB]) {
    const { stats } = await tab.call('load', 'a', url, { memory });
    expect(stats.memory.budget).toBe(Math.ceil(memory / 65_536) * 65_536);
    expect(stats.memory.wasm).toBe(stats.memory.budget);
    const arena = stats.memory.map.reduce((sum, region) => sum + region.bytes, 0);
    expect(arena).toBe(stats.memory.budget - MiB);
    const { pinnedBytes, ringBytes, kvBytes, scratchBytes, fixedBytes, freeBytes } = stats.plan;
    expect(pinnedBytes + ringBytes + kvBytes + scratchBytes + fixedBytes + freeBytes).toBe(arena);
    expect(stats.plan.residency.filter(({ pinned }) => pinned)).toHaveLength(stats.plan.pinnedSegments);
    expect(stats.plan.residency.reduce((sum, segment) => sum + segment.bytes, 0)).toBe(stats.model.weightBytes);
    await tab.call('generate', 'a', PROMPT, greedy);
    expect((await tab.call('stats', 'a')).memory.wasm).toBe(stats.memory.budget);
    await tab.call('close', 'a');
  }
});

test('memory is as large as it may be', async () => {
  const most = 4096 * MiB - 65_536;
  await tab.call('load', 'a', url, { memory: most });
  const { stats } = await tab.call('generate', 'a', PROMPT, greedy);
  expect(stats.memory.wasm).toBe(most);
  await expect(tab.call('load', 'b', url, { memory: 4096 * MiB })).rejects.toMatchObject({
    ...{ code: 'bad_argument', message: expect.stringContaining('at most 4294901760') as unknown as string },
  });
});

test('a page whose rules forbid WebAssembly is told which', async () => {
  const strict = await TestServer.start([], { wasm: false });
  const strictTab = await browser.open(strict.origin);
  const file = strict.serve('model.qsf', bytes);
  await expect(strictTab.call('load', 'a', file, options)).rejects.toMatchObject({
    ...{
      code: 'unsupported_host',
      message: expect.stringContaining("must have 'wasm-unsafe-eval'") as unknown as string,
    },
  });
  await strictTab.close();
  await strict.stop();
});

test('a server that does not share with the page is told apart from one that is away', async () => {
  const mean = await TestServer.start([], { shared: false });
  const guests = await TestServer.start([mean.origin]);
  const file = mean.serve('model.qsf', bytes);
  const guest = await browser.open(guests.origin);
  const soon = { ...options, network: { retries: 1, retryDelay: 10 } };
  await expect(guest.call('load', 'a', file, soon)).rejects.toMatchObject({
    ...{
      code: 'network_error',
      message: expect.stringContaining(`Access-Control-Allow-Origin: ${guests.origin}`) as unknown as string,
    },
  });
  expect(mean.asked.map(({ method }) => method)).toEqual(['GET', 'GET', 'HEAD', 'HEAD']);
  await mean.stop();
  const away = guest.call('load', 'b', file, soon);
  await expect(away).rejects.toMatchObject({
    message: expect.stringContaining('could not be read in 2 tries') as unknown as string,
  });
  await guest.close();
  await guests.stop();
});

test('what cannot be done is refused with the right code', async () => {
  const refused = (code: string) => expect.objectContaining({ name: 'QSFError', code }) as object;
  const tooSmall = tab.call('load', 'x', url, { memory: 2 * MiB, maxSeqLen: 512, kv: 'f16' });
  // The refusal names a budget that would do, and it does.
  const sentence = await tooSmall.then(() => '', String);
  const enough = Number(/at least ([\d.]+) MiB/.exec(sentence)?.[1]);
  await tab.call('load', 'least', url, { memory: enough * MiB, maxSeqLen: 512, kv: 'f16' });
  await expect(tooSmall).rejects.toEqual(refused('budget_too_small'));
  await expect(tab.call('load', 'x', url, { memory: 65_536 })).rejects.toEqual(refused('budget_too_small'));
  await expect(tab.call('load', 'x', url, { memory: -1 })).rejects.toEqual(refused('bad_argument'));
  await expect(tab.call('load', 'x', 'file:///etc/passwd', options)).rejects.toEqual(refused('bad_argument'));
  const gguf = pages.serve('other.gguf', Buffer.from(`GGUF${'x'.repeat(5000)}`));
  await expect(tab.call('load', 'x', gguf, options)).rejects.toEqual(refused('bad_version'));
  const lost = pages.serve('lost.qsf', Buffer.from(`<!DOCTYPE html>${'<p>Not found</p>'.repeat(20)}`));
  const page = {
    code: 'bad_magic',
    message: expect.stringMatching(/\/lost\.qsf: .* it is a web page/) as unknown as string,
  };
  await expect(tab.call('load', 'x', lost, options)).rejects.toMatchObject(page);
  const short = pages.serve('short.qsf', bytes.subarray(0, bytes.length - 10_000));
  await expect(tab.call('load', 'x', short, options)).rejects.toMatchObject({ name: 'QSFError' });
  const empty = pages.serve('empty.qsf', Buffer.alloc(0));
  await expect(tab.call('load', 'x', empty, options)).rejects.toEqual(refused('truncated'));

  await tab.call('load', 'a', url, options);
  await expect(tab.call('generate', 'a', [9_999_999], greedy)).rejects.toEqual(refused('bad_token'));
  await expect(tab.call('generate', 'a', PROMPT, { temperature: -1 })).rejects.toEqual(refused('bad_argument'));
  await expect(tab.call('generate', 'a', PROMPT, { maxTokens: 1.5 })).rejects.toEqual(refused('bad_argument'));
  await expect(tab.call('generate', 'a', PROMPT, { seed: -1 })).rejects.toEqual(refused('bad_argument'));
  await expect(tab.call('generate', 'a', Array<number>(5000).fill(5), greedy)).rejects.toEqual(refused('context_full'));
  await expect(tab.call('generate', 'a', PROMPT, { ...greedy, sequence: 1 })).rejects.toEqual(refused('bad_argument'));
  const long = tab.call('generate', 'a', PROMPT, { ...greedy, maxTokens: 200, ignoreEos: true });
  const waiting = tab.call('generate', 'a', PROMPT, greedy);
  await long;
  await waiting;
  await expectFresh('a');
});

test('the variant is timed once for the origin', async () => {
  await tab.call('load', 'a', url, options);
  const { variant } = (await tab.call('stats', 'a')).engine;
  const kept = () =>
    tab.page!.evaluate(
      async (to) => {
        const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('qsf-choices');
        const handle = await folder.getFileHandle('variant');
        const text = await (await handle.getFile()).text();
        const file = await handle.createWritable();
        await file.write(text.replace(/^\w+/, to));
        await file.close();
        return text;
      },
      variant === 'relaxed' ? 'relaxedpairs' : 'relaxed',
    );
  expect(await kept()).toMatch(new RegExp(`^${variant}\n.*Chrom`));
  await tab.call('close', 'a');
  await tab.call('load', 'a', url, options);
  expect((await tab.call('stats', 'a')).engine.variant).toBe(variant === 'relaxed' ? 'relaxedpairs' : 'relaxed');
  await expectFresh('a');
});
