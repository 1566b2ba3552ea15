import './fair-channel.js';

import { beforeEach, describe, expect, it, vi } from 'vitest';

import { openOptions, promptOptions, regions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { GenerateRequest, LoadRequest } from '../../web/src/contract.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import { QSFError } from '../../web/src/errors.js';
import type { Model } from '../../web/src/worker/model.js';
import { CALL } from './call.js';
import { checkOptions } from '../../web/src/page/options.js';
import type { Progress } from '../../web/src/progress-types.js';
import { FakeSource, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';
import { installFakeOpfs } from './fake-opfs.js';
import { modelOf } from './model-of.js';

const loadRequest: LoadRequest = {
  ...{ source: 'https://example.org/model.qsf', memory: 262_144, open: checkOptions(openOptions, {}), kv: undefined },
  ...{
    cache: true,
    cacheLimit: undefined,

    background: false,
    variant: undefined,
    threads: undefined,
    network: {},
  },
};
const generateRequest: GenerateRequest = {
  ...checkOptions(samplerOptions, {}),
  ...checkOptions(promptOptions, { maxTokens: 100 }),
  ...{ prompt: 'Once', stop: [], anew: true },
};

let instance: FakeSession;
let source: FakeSource;
let progress: Progress[];
let warnings: string[];

beforeEach(() => {
  source = new FakeSource();
  progress = [];
  warnings = [];
});

function create(request: Partial<LoadRequest> = {}): Model {
  const fake = fakeEngine();
  instance = fake.instance;
  return modelOf({ ...loadRequest, ...request }, fake.engine, source, {
    progress: (p) => progress.push(p),
    warning: (w) => warnings.push(w),
  });
}

async function loaded(): Promise<Model> {
  const model = create();
  await model.load();
  return model;
}

/** An error whose later tries succeed, as from a cache that was dropped. */
function failOnce(code: keyof typeof errorNumbers): void {
  instance.refuse.complete = { code, sentence: 'Wrong bytes.' };
  source.onRestart = () => delete instance.refuse.complete;
}

describe('load()', () => {
  it('opens, fetches what stays, and tells how far it is', async () => {
    source.loaded = 500;
    const model = create();
    await model.load();
    expect(instance.calls).toEqual([`open ${String(source.size)}`, 'preload']);
    expect(source.calls).toEqual(['accepted', 'keep']);
    expect(source.kept).toBe(instance.table);
    expect(progress.map(({ phase }) => phase)).toEqual(['open', 'plan', 'download', 'ready']);
    const told = { phase: 'ready', loaded: 500, total: source.size, network: 0, cache: 0 };
    expect(progress.at(-1)).toEqual({ ...told, plan: expect.any(Object) as object });
    expect(model.stats().model.hash).toBe('m0de1');
    expect(model.stats().io.engine).toBe(128 + 2000);
  });

  it('reports what the plan means and its expected speed before a weight is fetched', async () => {
    const model = create();
    instance.tokenRate = 20;
    let keptBefore = false;
    const push = progress.push.bind(progress);
    vi.spyOn(progress, 'push').mockImplementation((one) => {
      if (one.phase === 'plan') keptBefore = source.calls.includes('keep');
      return push(one);
    });
    await model.load();
    const expected = { tokensPerSecond: 20, residentMemory: 9, residentTokensPerSecond: 40 };
    expect(progress.map((one) => one.expected)).toEqual([undefined, expected, expected, expected]);
    const { weightBytes, pinnedBytes, tokenBytes, kv, maxSeqLen } = instance.stats();
    const plan = { weightBytes, pinnedBytes, tokenBytes, kv, maxSeqLen };
    expect(progress.map((one) => one.plan)).toEqual([undefined, plan, plan, plan]);
    expect(keptBefore).toBe(false);
  });

  it('reports one plan though a watched source has two', async () => {
    source.isWatched = true;
    await create().load();
    expect(progress.map(({ phase }) => phase)).toEqual(['open', 'plan', 'download', 'download', 'ready']);
  });

  it('waits until everything is kept', async () => {
    let keep!: () => void;
    source.keeping = new Promise((resolve) => (keep = resolve));
    let done = false;
    const loading = create()
      .load()
      .then(() => (done = true));
    await until(() => source.calls.includes('keep'));
    await stays(() => !done);
    keep();
    await loading;
    expect(instance.calls).toContain('preload');
  });

  /** Returns a promise that is rejected, and may be long before the model awaits it. */
  function noAnswer(): Promise<void> {
    const refused: Promise<void> = Promise.reject(new QSFError('network_error', 'No answer.'));
    refused.catch(() => undefined);
    return refused;
  }

  it('fails when what is to be kept cannot be', async () => {
    source.keeping = noAnswer();
    await expect(create().load()).rejects.toMatchObject({ code: 'network_error', message: 'No answer.' });
  });

  it('in the background is over when the plan stands', async () => {
    source.keeping = noAnswer();
    const model = create({ background: true });
    await model.load();
    expect(source.calls).toContain('keep');
    expect(instance.calls).not.toContain('preload');
    expect(progress.at(-1)!.phase).toBe('ready');
    await model.start(CALL, generateRequest);
    expect((await model.next(CALL.id)).pieces[0]).toBe('<0>');
  });

  it('lazily fetches nothing but what is asked for', async () => {
    const model = create({ lazy: true });
    await model.load();
    expect(source.calls).toEqual(['accepted']);
    expect(instance.calls).toEqual([`open ${String(source.size)}`]);
    expect(instance.opened[0]).toMatchObject({ watched: false });
    expect(source.pieces).toHaveLength(1);
    await model.start(CALL, generateRequest);
    expect((await model.next(CALL.id)).pieces[0]).toBe('<0>');
  });

  it('says what the file is instead, and of which address', async () => {
    const model = create();
    failOnce('bad_magic');
    await expect(model.load()).rejects.toMatchObject({
      code: 'bad_magic',
      message: expect.stringMatching(/^https:\/\/example\.org\/model\.qsf: ./) as string,
      url: 'https://example.org/model.qsf',
    });
  });

  it("warns of what the plan costs, once, and reports the plan's reasons", async () => {
    const model = create();
    instance.warning = 'Keys and values are kept in 4bit.';
    failOnce('bad_checksum');
    source.fromCache = 1;
    await model.load();
    expect(source.calls).toContain('restart');
    expect(warnings).toEqual(['Keys and values are kept in 4bit.']);
    const { kvReason, contextReason, modelSeqLen, moreContext } = model.stats().plan;
    expect([kvReason, contextReason, modelSeqLen]).toEqual(["the model's own", "the model's own", 64]);
    expect(moreContext).toBe('a shorter text');
  });

  it.each(['truncated', 'bad_checksum', 'bad_segment'] as const)(
    'tells the address of a file that is %s',
    async (code) => {
      const model = create();
      failOnce(code);
      const url = 'https://example.org/model.qsf';
      await expect(model.load()).rejects.toMatchObject({ code, message: `${url}: Wrong bytes.`, url });
      const ofFile = create({ source: new Blob(['x']) });
      failOnce(code);
      await expect(ofFile.load()).rejects.toMatchObject({ code, message: 'Wrong bytes.', url: undefined });
    },
  );

  it('tells the address also when a later read finds it so', async () => {
    const model = await loaded();
    instance.script = { fails: { before: 1, error: { code: 'bad_checksum', sentence: 'Wrong bytes.' } } };
    await model.start(CALL, generateRequest);
    await model.next(CALL.id);
    await expect(model.next(CALL.id)).rejects.toMatchObject({
      code: 'bad_checksum',
      url: 'https://example.org/model.qsf',
    });
  });

  it.each([
    [
      '<!DOCTYPE html><title>Not Found</title>',
      'bad_magic',
      "not a QSF file; it is a web page: is the address the file's own?",
    ],
    [
      '\n <HTML><body>No.</body></HTML>',
      'bad_magic',
      "not a QSF file; it is a web page: is the address the file's own?",
    ],
    ['QSF1', 'truncated', 'the file has 4 bytes, a header alone has 128'],
    ['', 'truncated', 'the file has 0 bytes, a header alone has 128'],
  ])('says what a file is that is shorter than a header: %j', async (text, code, sentence) => {
    const bytes = new TextEncoder().encode(text);
    source.size = bytes.length;
    source.byteAt = (at) => bytes[at]!;
    const url = 'https://example.org/model.qsf';
    await expect(create().load()).rejects.toMatchObject({ code, message: `${url}: ${sentence}`, url });
  });

  it('warns of a cache that was refused, and of what that costs', async () => {
    source.cacheState = 'off';
    const model = create();
    await model.load();
    expect(warnings).toHaveLength(1);
    const streamed = instance.table.filter(({ pinned }) => !pinned).reduce((sum, { size }) => sum + size, 0);
    expect(streamed).toBeGreaterThan(0);
    expect(model.stats().io.networkPerToken).toBe(streamed);
    expect(warnings[0]).toContain(`${String(streamed)} bytes of it for every token`);
  });

  it.each([{ cache: false }, { source: new Blob(['x']) }])('warns of no cache with %o', async (request) => {
    source.cacheState = 'off';
    await create(request).load();
    expect(warnings.filter((warning) => !warning.includes('from a File or Blob'))).toEqual([]);
  });

  it('costs nothing for every token once it is kept', async () => {
    source.cacheState = 'complete';
    const model = create();
    await model.load();
    expect(model.stats().io.networkPerToken).toBe(0);
    expect(warnings).toEqual([]);
  });

  it('does not report every byte', async () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    await loaded();
    const before = progress.length;
    for (let i = 0; i < 1000; i++) {
      now += 1;
      source.onLoaded!();
    }
    expect(progress.length).toBe(before + 10);
    vi.mocked(performance.now).mockRestore();
  });
});

describe('what others see being read', () => {
  const watched = () => instance.opened.map((options) => options.watched);
  const experts = () => {
    instance.table[2]!.byText = true;
    instance.table[2]!.pinned = false;
  };

  it('is nothing where the model is kept before the first prompt', async () => {
    source.isWatched = true;
    const model = create();
    experts();
    let keep!: () => void;
    source.keeping = new Promise((resolve) => (keep = resolve));
    const loading = model.load();
    await until(() => source.calls.includes('keep'));
    source.isWatched = false;
    keep();
    await loading;
    expect(watched()).toEqual([false]);
    expect(source.hidden).toEqual([instance.table[2]]);
    expect(warnings).toEqual([]);
  });

  it.each([
    { title: 'nothing is kept', keeps: false, background: false },
    { title: 'it is kept in the background', keeps: true, background: true },
  ])('tells nothing of the text where $title', async ({ keeps, background }) => {
    Object.assign(source, { isWatched: true, keeps });
    await create({ background }).load();
    expect(watched()).toEqual([true]);
    expect(source.hidden).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it('tells nothing of the text where the browser refused to keep it', async () => {
    source.isWatched = true;
    await create().load();
    expect(watched()).toEqual([false, true]);
    // What stays is read once.
    expect(instance.calls.filter((call) => call === 'preload')).toHaveLength(1);
    expect(source.hidden).toBeUndefined();
  });

  it('is warned of where experts are chosen', async () => {
    Object.assign(source, { isWatched: true, keeps: false });
    const model = create();
    experts();
    await model.load();
    expect(warnings).toEqual([
      expect.stringMatching(/^Which experts are read .* server of https:\/\/example\.org\/model\.qsf sees them/),
    ]);
  });

  it('is nothing of a file', async () => {
    source.keeps = false;
    const model = create({ source: new Blob(['x']) });
    experts();
    await model.load();
    expect(watched()).toEqual([false]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).not.toContain('experts');
  });

  it('is warned of where a file is streamed, and not where everything stays or is copied', async () => {
    await create({ source: new Blob(['x']) }).load();
    expect(warnings).toEqual([
      expect.stringMatching(/^\d+ bytes of weights are read from a File or Blob .* With 9 bytes of memory none are\.$/),
    ]);
    warnings.length = 0;
    const resident = create({ source: new Blob(['x']) });
    for (const segment of instance.table) segment.pinned = true;
    await resident.load();
    expect(warnings).toEqual([]);
    installFakeOpfs(() => 1);
    try {
      await create({ source: new Blob(['x']) }).load();
      expect(warnings).toEqual([]);
      await create({ source: new Blob(['x']), cache: false }).load();
      expect(warnings).toHaveLength(1);
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('what may come from a stale cache', () => {
  it.each(['bad_checksum', 'bad_magic', 'truncated', 'bad_tokenizer'] as const)(
    'is read anew once after %s',
    async (code) => {
      const model = create();
      failOnce(code);
      source.fromCache = 1;
      await model.load();
      expect(source.calls.filter((call) => call === 'restart')).toHaveLength(1);
      expect(instance.calls.filter((call) => call.startsWith('open'))).toHaveLength(2);
      expect(progress.at(-1)!.phase).toBe('ready');
    },
  );

  it('is not read anew a second time', async () => {
    const model = create();
    instance.refuse.complete = { code: 'bad_checksum', sentence: 'Wrong bytes.' };
    source.fromCache = 1;
    const url = 'https://example.org/model.qsf';
    await expect(model.load()).rejects.toMatchObject({ code: 'bad_checksum', message: `${url}: Wrong bytes.`, url });
    expect(source.calls.filter((call) => call === 'restart')).toHaveLength(1);
  });

  it('is not read anew when nothing came from there', async () => {
    const model = create();
    failOnce('bad_checksum');
    await expect(model.load()).rejects.toMatchObject({ code: 'bad_checksum' });
    expect(source.calls).not.toContain('restart');
  });

  it('is not read anew for an error that is no fault of it', async () => {
    const model = create();
    failOnce('budget_too_small');
    source.fromCache = 1;
    await expect(model.load()).rejects.toMatchObject({ code: 'budget_too_small' });
    expect(source.calls).not.toContain('restart');
  });

  it('is read anew when the file changed on the server, cache or none', async () => {
    const model = create();
    source.error = new QSFError('file_changed', 'It changed.');
    source.onRestart = () => {
      source.error = undefined;
      source.size = 9999;
    };
    await model.load();
    expect(instance.calls.at(-2)).toBe('open 9999');
  });

  it('is read anew only when no read is under way any more', async () => {
    const model = create();
    source.fromCache = 1;
    source.mode = 'held';
    const loading = model.load();
    source.release();
    // The first of two segments is wrong while the second is on its way.
    await until(() => source.held === 2);
    failOnce('bad_checksum');
    source.release(1);
    await stays(() => !source.calls.includes('restart'));
    expect(instance.missing).toBe(1);
    source.mode = 'now';
    source.release();
    await loading;
    expect(source.calls).toContain('restart');
  });
});

describe('stats()', () => {
  it('count every region once, and the host none', async () => {
    const model = await loaded();
    instance.map = regions.map((region, i) => [region, 2 ** i]);
    const { memory, plan } = model.stats();
    expect(memory.map.map(({ region }) => region)).toEqual(regions.filter((region) => region !== 'host'));
    expect(memory.map.find(({ region }) => region === 'kv_cache')).toEqual({
      region: 'kv_cache',
      name: 'kv cache',
      bytes: 32,
    });
    const at = (region: (typeof regions)[number]) => 2 ** regions.indexOf(region);
    expect(plan).toMatchObject({
      pinnedBytes: at('pinned'),
      ringBytes: at('ring'),
      kvBytes: at('kv_cache'),
      scratchBytes: at('activations') + at('logits') + at('embedding_rows'),
      fixedBytes: at('session') + at('tables') + at('tokenizer') + at('texts'),
      freeBytes: at('free'),
    });
    expect(plan.residency).toEqual([
      { bytes: 1200, pinned: true },
      { bytes: 1200, pinned: true },
      { bytes: 1200, pinned: false },
    ]);
    expect(model.stats()).not.toHaveProperty('generation');
  });
});

describe('close()', () => {
  it('ends a generation that computes before the source is closed', async () => {
    const model = await loaded();
    instance.script = { work: Infinity };
    await model.start(CALL, generateRequest);
    const next = model.next(CALL.id);
    await until(() => instance.stepped > 20);
    await model.close();
    expect(await next).toMatchObject({ pieces: [], result: { end: 'cancelled' } });
    expect(model.stats().generation).toMatchObject({ end: 'cancelled', running: false });
    expect(instance.calls.slice(-3)).toEqual(['stop 0', 'rewind 7 0', 'close']);
    expect(source.calls.at(-1)).toBe('close');
  });

  it('ends one that waits for bytes', async () => {
    const model = await loaded();
    instance.script = { reads: (n) => n === 0 };
    source.mode = 'held';
    await model.start(CALL, generateRequest);
    await until(() => source.held === 1);
    await model.close();
    expect(model.stats().generation).toMatchObject({ end: 'cancelled' });
    expect(source.calls.at(-1)).toBe('close');
  });

  it('without a generation ends threads and source', async () => {
    const model = await loaded();
    await model.close();
    expect(instance.calls.at(-1)).toBe('close');
    expect(source.calls.at(-1)).toBe('close');
  });
});
