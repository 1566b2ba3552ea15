import './fair-channel.js';

import { beforeEach, describe, expect, it } from 'vitest';

import { promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import { QSFError } from '../../web/src/errors.js';
import { checkOptions } from '../../web/src/page/options.js';
import { Runner } from '../../web/src/worker/runner.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import { FakeSource, byteAt, fakeEngine, stays, until } from './fake-engine.js';
import type { FakeSession } from './fake-engine.js';

let instance: FakeSession;
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
    ...{ fileSize: source.size, vouched: false, kv: undefined, maxSeqLen: 0 },
    ...{ kvWindow: 0, kvSinks: 0, kvChosen: 0 },
    ...{ guesses: 0, guessByLayers: false, guessByHead: false, guessLayers: 0, logprobs: false, sequences: 1 },
    ...{
      chunk: 0,
      ringSlots: 0,
      streamAll: false,
      recheck: false,
      allLogits: false,
      readRate: 0,
      computeRate: 0,
      watched: false,
      textBytes: 0,
    },
  });

const start = (options: object = {}) =>
  runner.engine.start(
    {
      ...checkOptions(samplerOptions, { temperature: 0, topK: 0, topP: 1 }),
      ...checkOptions(promptOptions, { maxTokens: 5 }),
      ...{ prompt: 'Once', stop: [], anew: true },
      ...options,
    },
    0,
  );

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
    source.error = new QSFError('http_status', 'The server answered 404', place);
    open();
    await expect(runner.run()).rejects.toMatchObject({
      ...{ code: 'http_status', message: 'The server answered 404', ...place },
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

describe('what is thrown in a source', () => {
  it('as it is asked ends the run, and the next one begins anew', async () => {
    const read = source.read.bind(source);
    source.read = () => {
      throw new RangeError('Array buffer allocation failed');
    };
    open();
    await expect(runner.run()).rejects.toMatchObject({
      ...{ name: 'QSFError', code: 'internal', message: 'RangeError: Array buffer allocation failed' },
    });
    expect(instance.missing).toBe(0);
    source.read = read;
    open();
    expect(await runner.run()).toBe('ready');
  });

  it.each(['now', 'later'] as const)('as it is told of wrong bytes ends the run (%s)', async (mode) => {
    source.mode = mode;
    instance.refuse.complete = { code: 'bad_checksum', sentence: 'The bytes are damaged.' };
    source.rejected = () => {
      throw new RangeError('Invalid array length');
    };
    open();
    await expect(runner.run()).rejects.toMatchObject({ message: expect.stringContaining('Invalid array') as string });
  });

  it('with more to say than the engine has room for is told whole', async () => {
    const sentence = `${'A long address '.repeat(4000)}could not be read.`;
    source.error = new QSFError('network_error', sentence);
    open();
    await expect(runner.run()).rejects.toMatchObject({ code: 'network_error', message: sentence });
    expect(instance.missing).toBe(0);
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
  await until(() => source.held > 0);
  const { stepped } = instance;
  // One that asks for bytes, and one that finds that none have come.
  expect(stepped).toBeLessThanOrEqual(2);
  await stays(() => instance.stepped <= 2);
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
  instance.script = {};
  expect(await running).toBe('token');
});

it('steps again when it is woken while it waits for bytes', async () => {
  start();
  instance.script = { reads: (n) => n === 0 };
  source.mode = 'held';
  const running = runner.run();
  await until(() => source.held > 0);
  instance.stop(0);
  runner.wake();
  expect(await running).toBe('ready');
  source.release();
});

it('is settled when the last read has landed', async () => {
  await runner.settled();
  source.mode = 'held';
  open();
  const running = runner.run();
  await until(() => source.held > 0);
  let settled = false;
  const settling = runner.settled().then(() => (settled = true));
  await stays(() => !settled);
  source.release();
  await settling;
  await running;
  expect(instance.missing).toBe(0);
});
