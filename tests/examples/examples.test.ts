// Every example is built from the packed package and tells the story that the native program tells.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from '@playwright/test';
import type { BrowserContext } from '@playwright/test';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { demoModel } from '../../scripts/lib/build.mjs';
import { buildPackage } from '../../scripts/lib/package.mjs';
import { firefoxContext } from '../../e2e/browsers.js';
import { chromiumArgs, chromiumPath } from '../../e2e/chromium.mjs';
import { removeProfile } from '../../e2e/profile.mjs';
import { runNatively } from '../../e2e/native.js';
import { WebKit } from '../../e2e/webdriver.js';
import { messageWith } from '../../web/src/retrieval.js';
import { App, pack, packedFolder, stopApps } from './apps.js';
import { isolate, serveFolder, stopServers } from './servers.js';

let story = '';
let model = '';
let context: BrowserContext;
let profile = '';

beforeAll(async () => {
  await buildPackage();
  await pack();
  const options = ['--prompt', 'Once upon a time', '--max-tokens', '40', '--temperature', '0'];
  ({ text: story } = await runNatively(demoModel, 16, options));
  expect(story.length).toBeGreaterThan(50);
});

async function open(args: string[] = []): Promise<void> {
  profile = mkdtempSync(join(tmpdir(), 'qsf-chromium-'));
  context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    args: [...chromiumArgs, ...args],
    ...(args.length > 0 && { ignoreDefaultArgs: ['--disable-extensions'] }),
  });
  context.setDefaultNavigationTimeout(120_000); // servers of a framework compile a page when it is first asked for
}

async function modelAddress(): Promise<string> {
  if (!model) model = `${await serveFolder(join(demoModel, '..'), 'shared')}/stories-8bit.qsf`;
  return model;
}

/** What a page says at its end, and how many threads told it. */
async function read(address: string, asked: Record<string, string> = {}): Promise<{ story: string; title: string }> {
  const page = await context.newPage();
  const said: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  try {
    await page.goto(`${address}?${new URLSearchParams({ model: await modelAddress(), ...asked }).toString()}`);
    const place = page.locator('#story[title]');
    await place.waitFor({ timeout: 120_000 }).catch(() => {
      throw new Error(`${address} says nothing. Its console: ${said.join('\n')}`);
    });
    return { story: (await place.textContent()) ?? '', title: (await place.getAttribute('title')) ?? '' };
  } finally {
    await page.close();
  }
}

/** The answer of a page that chats, after its end. */
async function answer(address: string): Promise<string> {
  const page = await context.newPage();
  try {
    await page.goto(`${address}?${new URLSearchParams({ model: await modelAddress() }).toString()}`);
    await page.getByLabel('Message').fill('Once upon a time');
    await page.getByRole('button', { name: 'Send', disabled: false }).click({ timeout: 120_000 });
    const list = page.locator('ol[aria-busy=false]:has(.assistant)');
    await list.waitFor({ timeout: 120_000 });
    return (await list.locator('.assistant').textContent()) ?? '';
  } finally {
    await page.close();
  }
}

/** What a page does with files that lie elsewhere; as text, since the test's own imports are not the page's. */
const TELL_FROM = `async ([place, source]) => {
  const { QSF, MiB } = await import('/qsf/index.js');
  const wasmBinary = await (await fetch(place + '/qsf-simd.wasm')).arrayBuffer();
  const workerUrl = place + '/worker.js';
  const told = [];
  for (const options of [
    { wasmUrl: new URL(place + '/') },
    { wasmUrl: place + '/qsf-simd-threads.wasm', threads: 2 },
    { wasmBinary },
  ]) {
    const llm = await QSF.load(source, { memory: 16 * MiB, cache: false, workerUrl, ...options });
    let text = (await llm.stats()).engine.isa + ':';
    for await (const piece of llm.generate('Once upon a time', { maxTokens: 40, temperature: 0 })) text += piece;
    told.push(text);
    await llm.close();
  }
  return told;
}`;

const several = /^[2-8] threads$/;

describe('in a page', () => {
  beforeAll(() => open());
  afterEach(() => {
    stopApps();
  });
  afterAll(async () => {
    await context.close();
    await removeProfile(profile);
    stopServers();
    model = '';
  });

  const told = async (address: string, asked?: Record<string, string>) => {
    const said = await read(address, asked);
    expect(said).toEqual({ story, title: expect.stringMatching(several) as string });
  };

  it.each(['5.4.21', '6.4.6', '7.3.8', '8.3.8'])('Vite %s: dev, build and preview', async (vite) => {
    const app = await App.install('vite', { vite });
    await told(await isolate(await app.serve('dev', '--port')));
    stopApps();
    await app.script('build');
    await told(await isolate(await app.serve('preview', '--port')));
  });

  it('Vite 5 in a workspace: says the line that is to be written, and runs with it', async () => {
    const app = (await App.install('vite', { vite: '5.4.21' })).inWorkspace();
    const line = "optimizeDeps: { exclude: ['qsf'] }";
    const { story: words, title } = await read(await isolate(await app.serve('dev', '--port')));
    expect({ title, says: words.includes(line) }, words).toEqual({ title: 'failed', says: true });
    stopApps();
    writeFileSync(join(app.folder, 'vite.config.js'), `export default { ${line} };\n`);
    await told(await isolate(await app.serve('dev', '--port')));
  });

  it.each(['react', 'vue', 'svelte'])('a chat with %s: build and preview', async (framework) => {
    const app = await App.install(framework);
    await app.script('build');
    expect(await answer(await isolate(await app.serve('preview', '--port')))).toBe(story);
  });

  it('a search in files, and an answer from what it found', async () => {
    const app = await App.install('retrieval');
    await app.script('build');
    const address = await isolate(await app.serve('preview', '--port'));
    const page = await context.newPage();
    await page.goto(`${address}?${new URLSearchParams({ model: await modelAddress() }).toString()}`);
    const king = 'The king of the north drinks tea.';
    const texts = { 'king.txt': king, 'sea.txt': 'The sea is wide.' };
    const files = Object.entries(texts).map(([name, text]) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(text),
    }));
    await page.locator('#files').setInputFiles(files);
    await page.getByText('2 passages.').waitFor({ timeout: 120_000 });
    await page.getByLabel('Question').fill(king);
    await page.keyboard.press('Enter');
    const answer = page.locator('#answer[aria-busy=false]:not(:empty)');
    await answer.waitFor({ timeout: 120_000 });
    const found = await page.getByRole('listitem').allTextContents();
    expect(found[0]).toBe(`${king} (king.txt, 1.00)`);
    expect(found).toHaveLength(2);
    const passages = [king, texts['sea.txt']].map((text, i) => ({ name: Object.keys(texts)[i]!, text }));
    const prompt = messageWith(king, passages);
    const native = await runNatively(demoModel, 16, ['--prompt', prompt, '--max-tokens', '40', '--temperature', '0']);
    expect(await answer.textContent()).toBe(native.text);
    await page.close();
  });

  it('webpack, without a circular module', async () => {
    const app = await App.install('webpack');
    expect(await app.script('build')).not.toMatch(/circular|critical|resolve/i);
    await told(await serveFolder(join(app.folder, 'dist'), 'isolated'));
  });

  it.each(['esbuild', 'rollup'])('%s, with the worker beside the bundle', async (bundler) => {
    const app = await App.install(bundler);
    await app.script('build');
    await told(await serveFolder(join(app.folder, 'dist'), 'isolated'));
    rmSync(join(app.folder, 'dist', 'worker.js'));
    const without = await read(await serveFolder(join(app.folder, 'dist'), 'isolated'));
    expect(without.title).toBe('failed');
    expect(without.story).toMatch(/worker\.js answers 404; put the package's worker\.js and \.wasm files next to/);
  });

  it('a plain module', async () => {
    const app = await App.install('plain');
    await app.script('build');
    const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src *";
    await told(await serveFolder(app.folder, 'isolated', policy));
  });

  it.each(['shared', 'service'])('in the thread of a %s worker', async (kind) => {
    const app = await App.install('workers');
    await app.script('build');
    const said = await read(await serveFolder(app.folder, 'isolated'), { kind });
    expect(said).toEqual({ story, title: '1 threads' });
  });

  it("Vite's base on another origin", async () => {
    const app = await App.install('vite');
    const assets = await serveFolder(join(app.folder, 'dist'), 'shared');
    await app.script('build', '--base', `${assets}/`);
    await told(await serveFolder(join(app.folder, 'dist'), 'isolated'));
  });

  it('a CDN of another origin', async () => {
    const app = await App.install('cdn');
    const cdn = await serveFolder(packedFolder(), 'shared');
    await told(await serveFolder(app.folder, 'isolated'), { cdn });
  });

  it.each(['turbopack', 'webpack'])('Next with %s: dev, build and start', async (bundler) => {
    const app = await App.install('next');
    await told(await isolate(await app.serve('dev', '--port', `--${bundler}`)));
    stopApps();
    expect(await app.script('build', `--${bundler}`)).not.toMatch(/\bwarn|circular/i);
    await told(await isolate(await app.serve('start', '--port')));
  });

  it('files that lie elsewhere, by workerUrl, wasmUrl and wasmBinary', async () => {
    const app = await App.install('plain');
    await app.script('build');
    rmSync(join(app.folder, 'qsf', 'worker.js'));
    const elsewhere = await serveFolder(packedFolder(), 'shared');
    const page = await context.newPage();
    await page.goto(await serveFolder(app.folder, 'isolated'));
    const from = JSON.stringify([elsewhere, await modelAddress()]);
    const stories = (await page.evaluate(`(${TELL_FROM})(${from})`)) as string[];
    await page.close();
    expect(['relaxed', 'relaxedpairs'].map((variant) => `${variant}:${story}`)).toContain(stories[0]);
    expect(stories.slice(1)).toEqual([`simd:${story}`, `simd:${story}`]);
  });
});

it('in an extension (Manifest V3)', async () => {
  const app = await App.install('extension');
  await app.script('build');
  await open([`--disable-extensions-except=${app.folder}`, `--load-extension=${app.folder}`]);
  try {
    // Chromium names an extension that has no key by its folder.
    const digest = createHash('sha256').update(app.folder).digest('hex').slice(0, 32);
    const id = [...digest].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join('');
    const said = await read(`chrome-extension://${id}/index.html`);
    expect(said).toEqual({ story, title: expect.stringMatching(several) as string });
  } finally {
    await context.close();
    await removeProfile(profile);
    stopServers();
  }
});

describe('in the thread of a shared worker and of a service worker', () => {
  let address: string;
  beforeAll(async () => {
    model = '';
    const app = await App.install('workers');
    await app.script('build');
    address = await serveFolder(app.folder, 'isolated');
  });
  afterAll(() => stopServers());

  it('of Firefox', async () => {
    ({ context, profile } = await firefoxContext());
    try {
      for (const kind of ['shared', 'service'])
        expect(await read(address, { kind }), kind).toEqual({ story, title: '1 threads' });
    } finally {
      await context.close();
      await removeProfile(profile);
    }
  });

  it('of WebKit', async () => {
    const webkit = await WebKit.launch();
    const look = async () => {
      const story = document.querySelector<HTMLElement>('#story')!;
      while (story.title === '') await new Promise((resolve) => setTimeout(resolve, 50));
      return [story.textContent, story.title];
    };
    try {
      for (const kind of ['shared', 'service']) {
        const asked = new URLSearchParams({ model: await modelAddress(), kind });
        await webkit.goto(`${address}?${asked.toString()}`);
        expect(await webkit.run(look, undefined), kind).toEqual([story, '1 threads']);
      }
    } finally {
      await webkit.close();
    }
  });
});

it("in Node, from a path and from an address, and by OpenAI's calls", async () => {
  const app = await App.install('node');
  expect(await app.script('start', demoModel)).toBe(story);
  expect(await app.script('openai', demoModel)).toBe(story);
  // The warning of a context above the model's own comes before the model is open.
  const warned = `import { QSF } from 'qsf';
    for (let i = 0; i < 8; i++) {
      let n = 0;
      const llm = await QSF.load(process.argv[2], { maxSeqLen: 600, memory: 8 << 20, onWarning: () => n++ });
      process.stdout.write(String(n));
      await llm.close();
    }`;
  expect(await app.node(warned, demoModel)).toBe('11111111');
  const address = await serveFolder(join(demoModel, '..'), 'shared');
  expect(await app.script('start', `${address}/stories-8bit.qsf`)).toBe(story);
  stopServers();
});

it.each([
  ['Bun', { bun: '1.4.5' }, ['bun', 'main.js']],
  ['Deno', { deno: '2.9.6' }, ['deno', 'run', '--allow-all', 'main.js']],
] as const)('in %s, from a path and from an address', async (_, version, [program, ...args]) => {
  const app = await App.install('node', version);
  expect(await app.run(program, ...args, demoModel)).toBe(story);
  const address = await serveFolder(join(demoModel, '..'), 'shared');
  expect(await app.run(program, ...args, `${address}/stories-8bit.qsf`)).toBe(story);
  stopServers();
});
