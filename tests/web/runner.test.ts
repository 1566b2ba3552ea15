import './fair-channel.js';

import { beforeEach, describe, expect, it } from 'vitest';

import { QSFError } from '../../web/src/errors.js';
import { Runner } from '../../web/src/runner.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import { FakeSource, byteAt, fakeEngine, pause, until } from './fake-engine.js';
import type { FakeInstance } from './fake-engine.js';

let instance: FakeInstance;
let source: FakeSource;
let runner: Runner;

beforeEach(() => {
  const fake = fakeEngine();
  instance = fake.instance;
  source = new FakeSource();
  runner = new Runner(fake.engine, source);
});

const open = () =>
  runner.engine.open({
    ...{ fileSize: source.size, kv: undefined, maxSeqLen: 0, sequences: 1 },
    ...{ chunk: 0, ringSlots: 0, streamAll: false, recheck: false, allLogits: false, readRate: 0, computeRate: 0 },
  });

const start = (options: object = {}) =>
  runner.engine.start({
    ...{ prompt: 'Once', stop: [], continue: false, maxTokens: 5, addBos: true, special: true, ignoreEos: false },
    ...{
      logitsHash: false,
      allLogits: false,
      logitsFrom: 0,
      temperature: 0,
      topK: 0,
      topP: 1,
      repetitionPenalty: 1,
      seed: 0,
    },
    ...options,
  });

describe.each(['now', 'later'] as const)('reads that end %s', (mode) => {
  it('land where the engine wants them', async () => {
    source.mode = mode;
    open();
    expect(await runner.run()).toBe('ready');
    const header = new Uint8Array(instance.memory.buffer, 65_536, 128);
    expect(Array.from(header)).toEqual(Array.from(header, (_, i) => byteAt(i)));
    expect(runner.bytes).toBe(128);
    runner.engine.preload();
    expect(await runner.run()).toBe('ready');
    expect(runner.bytes).toBe(128 + 2000);
    expect(instance.missing).toBe(0);
  });

  it('that fail end the run with their own error', async () => {
    source.mode = mode;
    const place = { url: 'https://example.org/model.qsf', status: 404 };
    source.error = new QSFError('http_status', 'The server answered 404.', place);
    open();
    await expect(runner.run()).rejects.toMatchObject({
      ...{ code: 'http_status', message: 'The server answered 404.', ...place },
    });
    expect(instance.calls).toContain('fail http_status');
    source.error = new TypeError('no such thing');
    open();
    await expect(runner.run()).rejects.toMatchObject({ code: 'internal', message: 'TypeError: no such thing' });
  });

  it('that the engine finds wrong are told to the source', async () => {
    source.mode = mode;
    instance.refuse.complete = { code: 'bad_checksum', sentence: 'The bytes are damaged.' };
    open();
    await expect(runner.run()).rejects.toMatchObject({ code: 'bad_checksum', message: 'The bytes are damaged.' });
    expect(source.calls).toEqual(['rejected 0 128']);
  });
});

it('tells the CRC of what the source put in place', async () => {
  open();
  await runner.run();
  runner.engine.preload();
  await runner.run();
  expect(source.pieces.map(({ crc }) => crc)).toEqual([undefined, 0, 1]);
  for (const { into, crc32: own } of source.pieces) {
    expect(own!()).toBe(crc32(into));
    into[0]! ^= 1;
    expect(own!()).toBe(crc32(into));
  }
});

it('waits without stepping while nothing has come', async () => {
  source.mode = 'held';
  open();
  const running = runner.run();
  await pause(20);
  const { stepped } = instance;
  expect(stepped).toBeLessThan(5);
  await pause(20);
  expect(instance.stepped).toBe(stepped);
  source.release();
  expect(await running).toBe('ready');
});

it('gives messages a turn while it computes', async () => {
  start();
  instance.script = { work: Infinity };
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const running = runner.run();
  await until(() => turns > 3);
  clearInterval(timer);
  runner.stop();
  expect(await running).toBe('stopped');
});

it('is stopped while it waits for bytes', async () => {
  source.mode = 'held';
  open();
  const running = runner.run();
  await until(() => source.held > 0);
  runner.stop();
  expect(await running).toBe('stopped');
});

it('is stopped once, and a stop that came too late can be forgotten', async () => {
  start({ maxTokens: 2 });
  runner.stop();
  const before = instance.stepped;
  expect(await runner.run()).toBe('stopped');
  expect(instance.stepped).toBe(before);
  expect(await runner.run()).toBe('token');
  runner.stop();
  runner.rearm();
  expect(await runner.run()).toBe('token');
  expect(await runner.run()).toBe('done');
});

it('is settled when the last read has landed', async () => {
  await runner.settled();
  source.mode = 'held';
  open();
  const running = runner.run();
  await until(() => source.held > 0);
  runner.stop();
  await running;
  let settled = false;
  const settling = runner.settled().then(() => (settled = true));
  await pause(10);
  expect(settled).toBe(false);
  source.release();
  await settling;
  expect(instance.missing).toBe(0);
});
