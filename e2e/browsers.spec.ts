// What pages are for, in Firefox and WebKit: GGUF files as they are, conversations by a model's template, texts at once, and
// the demo page. What is expected comes from the native engine, or from Chromium with the same calls.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { launchChromium, launchFirefox, launchWebKit } from './browsers.js';
import type { Browser, Tab } from './browsers.js';
import { Demo } from './demo.js';
import { convertForChat, convertToGguf, runNatively } from './native.js';
import type { Receipt } from './native.js';
import { TestServer } from './server.js';

const MiB = 1024 * 1024;
const PROMPTS = ['Once upon a time', 'The king'] as const;
const MESSAGES = [{ role: 'user', content: 'Tell me of a king.' }];
const TURNS = ['Tell me of a king and of his three sons.', 'And then?', 'And of a fox?'];
const TEMPLATE =
  '{% for m in messages %}{{ m.role ~ ":" ~ m.content ~ "\\n" }}{% endfor %}' +
  '{% if add_generation_prompt %}assistant:{% endif %}';
const SCHEMA = {
  type: 'object',
  properties: { sons: { enum: ['one', 'two', 'three'] }, told: { type: 'boolean' } },
  required: ['sons', 'told'],
  additionalProperties: false,
};
const greedy = { maxTokens: 24, temperature: 0, logitsHash: true };
const greedily = ['--max-tokens', '24', '--temperature', '0'];
const options = { memory: 16 * MiB };
/** Less memory than the weights. */
const little = { memory: 4 * MiB, streamAll: true };

let models: TestServer;
let pages: TestServer;
let demo: Demo;
let gguf: Buffer;
/** After each prompt; the model is the .qsf file that is made of the GGUF file. */
const stories: Receipt[] = [];
const native = {} as { answer: Receipt; held: Receipt };
let talkInChromium: Awaited<ReturnType<typeof talk>>;

test.beforeAll(async () => {
  models = await TestServer.start();
  pages = await TestServer.start([models.origin]);
  pages.hub = models.origin;
  const made = await convertToGguf('q8_0');
  gguf = made.gguf;
  const chat = await convertForChat(TEMPLATE);
  models.serve('model.gguf', gguf);
  models.serve('chat.gguf', chat);
  models.serve('chat.qsf', await convertForChat(TEMPLATE, 'chat.qsf'));
  const siblings = [
    { rfilename: 'large-Q8_0.gguf', size: 400 * MiB },
    { rfilename: 'small/a b.gguf', size: gguf.length },
  ];
  models.answers.set('/api/models/owner/name/revision/main', { sha: '0123456', siblings });
  models.answers.set('/owner/name/resolve/main/small/a%20b.gguf', `${models.origin}/models/model.gguf`);

  for (const prompt of PROMPTS) stories.push(await runNatively(made.qsf, 16, ['--prompt', prompt, ...greedily]));
  const folder = mkdtempSync(join(tmpdir(), 'qsf-schema-'));
  writeFileSync(join(folder, 'schema'), JSON.stringify(SCHEMA));
  const message = ['--message', MESSAGES[0]!.content];
  native.answer = await runNatively(chat, 32, [...message, ...greedily]);
  const held = [...message, '--json-schema', join(folder, 'schema'), '--max-tokens', '100', '--seed', '3'];
  native.held = await runNatively(chat, 32, held);
  rmSync(folder, { recursive: true });

  const chromium = await launchChromium();
  const tab = await chromium.open(pages.origin);
  talkInChromium = await talk(tab);
  await chromium.close();

  demo = await Demo.start(false);
  writeFileSync(join(demo.folder, 'models', 'chat.gguf'), chat);
});

test.afterAll(async () => {
  await demo.stop();
  await pages.stop();
  await models.stop();
});

const address = (name: string) => `${models.origin}/models/${name}`;

async function expectStory(tab: Tab, name: string) {
  const { text, stats } = await tab.call('generate', name, PROMPTS[0], greedy);
  expect(text).toBe(stories[0]!.text);
  expect(stats.generation!.tokens).toEqual(stories[0]!.generated_tokens);
  expect(stats.generation!.logitsHash).toBe(stories[0]!.logits_hash);
  return stats;
}

/** A conversation by the model's own template, saved before its last turn. Only a file with checksums lets it be saved. */
async function talk(tab: Tab) {
  await tab.call('load', 'chat', address('chat.qsf'), { memory: 32 * MiB });
  const begun = await tab.call('converse', 'chat', [], TURNS.slice(0, 2), greedy);
  const saved = await tab.call('save', 'chat', { messages: begun.messages });
  const ended = await tab.call('converse', 'chat', begun.messages, TURNS.slice(2), greedy);
  await tab.call('close', 'chat');
  return { begun, saved, ended };
}

/** Fills fields and presses a button, all named by their ids. */
function press(tab: Tab, button: string, fields: Record<string, string> = {}): Promise<void> {
  const act = (given: { button: string; fields: Record<string, string> }) => {
    for (const [id, value] of Object.entries(given.fields)) Object.assign(document.getElementById(id)!, { value });
    document.getElementById(given.button)!.click();
  };
  return tab.run(act, { button, fields });
}

/** Waits until the first element of a selector that can be seen has a text like this. */
async function expectText(tab: Tab, selector: string, text: RegExp): Promise<void> {
  const read = (what: string) =>
    [...document.querySelectorAll<HTMLElement>(what)].find((element) => element.checkVisibility())?.textContent ?? '';
  await expect.poll(() => tab.run(read, selector), { timeout: 60_000 }).toMatch(text);
}

/** Keeps what the page complains of from now on. */
function watch(): void {
  const complaints: string[] = [];
  Object.assign(window, { complaints });
  const keep = (...words: unknown[]) => void complaints.push(words.map(String).join(' '));
  Object.assign(console, { error: keep, warn: keep });
  addEventListener('error', ({ message }) => keep(message));
  addEventListener('unhandledrejection', ({ reason }) => keep(reason));
}

for (const { title, launch } of [
  { title: 'Firefox', launch: launchFirefox },
  { title: 'WebKit', launch: launchWebKit },
]) {
  test.describe(title, () => {
    let browser: Browser;
    let tab: Tab;

    test.beforeAll(async () => {
      browser = await launch();
    });
    test.afterAll(async () => {
      await browser.close();
    });
    test.beforeEach(async () => {
      models.calm();
      tab = await browser.open(pages.origin);
    });
    test.afterEach(async () => {
      await tab.close();
    });

    test('a GGUF file of an address gives the text of its .qsf file, and is that file where it is kept', async () => {
      await tab.call('load', 'a', address('model.gguf'), options);
      const { model, io } = await expectStory(tab, 'a');
      expect(model.madeFrom).toBe('GGUF');
      expect(io.cacheState).toBe(browser.keepsFiles ? 'complete' : 'off');
      await expect(tab.call('save', 'a', {})).rejects.toMatchObject({ code: 'bad_state' });
      await tab.call('close', 'a');
      models.calm();
      await tab.call('load', 'b', address('model.gguf'), options);
      const second = await expectStory(tab, 'b');
      expect(second.model.madeFrom).toBe(browser.keepsFiles ? undefined : 'GGUF');
      expect(models.sent === 0).toBe(browser.keepsFiles);
      if (browser.keepsFiles) expect((await tab.call('save', 'b', {})).length).toBeGreaterThan(1000);
      await tab.call('close', 'b');
    });

    test('a GGUF file as a File gives it too, resident and streamed', async () => {
      for (const how of [options, little]) {
        const { model, plan } = await tab.call('loadFile', 'a', address('model.gguf'), how);
        expect(model.madeFrom).toBe('GGUF');
        expect(plan.pinnedSegments === plan.segments).toBe(how === options);
        const { io } = await expectStory(tab, 'a');
        expect(io).toMatchObject({ network: 0 });
        expect(io.blob).toBeGreaterThan(0);
        await tab.call('close', 'a');
      }
    });

    test('a file of the Hub and its repository give it too, from the server that the Hub redirects to', async () => {
      for (const name of ['hf:owner/name/small/a%20b.gguf', 'hf:owner/name']) {
        const { warnings } = await tab.call('load', 'a', name, { ...options, cache: false });
        const chosen = warnings.filter((warning) => warning.startsWith('hf:'));
        expect(chosen).toHaveLength(name.includes('small') ? 0 : 1);
        await expectStory(tab, 'a');
        expect(models.asked[0]!.path).toBe('/models/model.gguf');
        await tab.call('close', 'a');
      }
    });

    test('a GGUF file that is replaced while its weights are streamed ends in an error', async () => {
      models.serve('changing.gguf', gguf);
      await tab.call('load', 'a', address('changing.gguf'), { ...little, cache: false });
      await expectStory(tab, 'a');
      const other = Buffer.from(gguf);
      other.subarray(gguf.length / 2).reverse();
      models.serve('changing.gguf', other);
      const refused = { name: 'QSFError', code: 'file_changed' };
      await expect(tab.call('generate', 'a', PROMPTS[0], greedy)).rejects.toMatchObject(refused);
      await tab.call('close', 'a');
    });

    test("an answer in OpenAI's shapes, and one that follows a schema", async () => {
      await tab.call('load', 'a', address('chat.gguf'), { memory: 32 * MiB });
      const params = { messages: MESSAGES, temperature: 0, max_tokens: greedy.maxTokens };
      const { whole, chunks, awaited } = await tab.call('complete', 'a', params, greedy);
      const { text, generated_tokens } = native.answer;
      expect(awaited).toBe(text);
      expect(whole.choices[0]!.message).toMatchObject({ role: 'assistant', content: text });
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(text);
      for (const { usage } of [whole, chunks.at(-1)!])
        expect(usage).toMatchObject({ completion_tokens: generated_tokens.length });

      const responseFormat = { type: 'json_schema', schema: SCHEMA } as const;
      const how = { maxTokens: 100, seed: 3, logitsHash: true, responseFormat };
      const held = await tab.call('chat', 'a', MESSAGES, how);
      expect(held.text).toBe(native.held.text);
      // The receipt has the end token too.
      expect(held.end).toBe('eos');
      expect(held.tokens).toEqual(native.held.generated_tokens.slice(0, -1));
      expect(held.logitsHash).toBe(native.held.logits_hash);
      expect(Object.keys(JSON.parse(held.text) as object)).toEqual(['sons', 'told']);
      await tab.call('close', 'a');
    });

    test('a turn computes only what is new, and a saved conversation goes on with the same bits', async () => {
      const { begun, saved, ended } = await talk(tab);
      expect({ begun, ended }).toEqual({ begun: talkInChromium.begun, ended: talkInChromium.ended });
      expect(begun.answers[1]!.computed).toBeLessThan(begun.answers[0]!.computed);

      await tab.call('load', 'chat', address('chat.qsf'), { memory: 32 * MiB });
      const forms = [saved, talkInChromium.saved];
      for (const form of forms) {
        const { messages } = await tab.call('restoreFile', 'chat', form);
        expect(messages).toEqual(begun.messages);
        expect(await tab.call('converse', 'chat', messages!, TURNS.slice(2), greedy)).toEqual(ended);
      }
      if (browser.keepsFiles) {
        await tab.call('save', 'chat', { messages: ended.messages, name: 'talk' });
        await tab.call('close', 'chat');
        await tab.close();
        tab = await browser.open(pages.origin);
        await tab.call('load', 'chat', address('chat.qsf'), { memory: 32 * MiB });
        expect(await tab.call('restore', 'chat', 'talk')).toMatchObject({ messages: ended.messages });
        await tab.call('savedRemove', 'talk');
      }
      await tab.call('close', 'chat');
    });

    test('texts at once have the bits of each alone, and so has one that begins in the tick of an abort', async () => {
      await tab.call('load', 'a', address('model.gguf'), { memory: 32 * MiB, sequences: 2 });
      const both = await tab.call('together', 'a', [...PROMPTS], greedy);
      expect(both.map(({ sequence }) => sequence).sort()).toEqual([0, 1]);
      for (const [i, { text, tokens, logitsHash }] of both.entries())
        expect([text, tokens, logitsHash]).toEqual([
          stories[i]!.text,
          stories[i]!.generated_tokens,
          stories[i]!.logits_hash,
        ]);
      await tab.call('close', 'a');

      await tab.call('load', 'b', address('model.gguf'), options);
      const { reason, second } = await tab.call('abortAndGenerate', 'b', PROMPTS[0], greedy);
      expect(reason).toMatchObject({ name: 'AbortError' });
      expect(second!.text).toBe(stories[0]!.text);
      expect(second!.stats.generation!.logitsHash).toBe(stories[0]!.logits_hash);
      await tab.call('close', 'b');
    });

    test('the demo tells a story and answers a message', async () => {
      // Playwright sees all of it. Of WebKit the page itself sees what comes after it was loaded.
      const told: string[] = [];
      const context = tab.page?.context();
      context?.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) told.push(message.text());
      });
      context?.on('weberror', (error) => told.push(String(error.error())));
      await tab.close();
      tab = await browser.visit(demo.address);
      await tab.run(watch, undefined);
      await expectText(tab, '#status', /Room for/);
      await press(tab, 'write', { maxTokens: '24' });
      await expectText(tab, '#story', /^Once upon a time there was a little fox who.{40}/s);
      await expectText(tab, '#ending-text', /./);

      await press(tab, 'model-button');
      const open = (url: string) => {
        const field = document.getElementById('own-address') as HTMLInputElement;
        field.value = url;
        field.form!.requestSubmit();
      };
      await tab.run(open, `${demo.address}models/chat.gguf`);
      await expectText(tab, '#composer', /Send/);
      await expectText(tab, '#status', /Room for/);
      await press(tab, 'send', { maxTokens: '24', message: MESSAGES[0]!.content });
      await expectText(tab, '.answer', /24 tokens · .* at the length limit/);
      await expectText(tab, '.bubble', /Tell me of a king\./);
      const complaints = () => (window as unknown as { complaints: string[] }).complaints;
      told.push(...(await tab.run(complaints, undefined)));
      const refused: unknown = expect.stringContaining('The browser refused to keep');
      expect(told).toEqual(browser.keepsFiles ? [] : [refused, refused]);
    });
  });
}
