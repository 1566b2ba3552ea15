// How structures cross, over a module that writes the rows a test gives and keeps those that it gets.
import { readFileSync } from 'node:fs';

import { beforeEach, describe, expect, it } from 'vitest';

import { kernelCount, openOptions, promptOptions, samplerOptions, sessionStats } from '../../web/src/boundary.gen.js';
import { EngineInstance } from '../../web/src/engine-instance.js';
import type { EngineModule } from '../../web/src/engine-module.js';

const source = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const MAILBOX = 1024;
const STAGING = 4096;
const TEXTS = 8192;

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
const mailbox = new Float64Array(memory.buffer, MAILBOX, 64);

/** The calls with their numbers; what they give, and what they write before that. */
let calls: [string, ...number[]][];
let gives: Record<string, (...args: number[]) => number | undefined>;

const module = new Proxy({} as EngineModule, {
  get(_, name: string) {
    if (name === 'then') return undefined;
    return (...args: number[]) => {
      calls.push([name.replace('_instance_', ''), ...args]);
      return gives[name.replace('_instance_', '')]?.(...args) ?? 0;
    };
  },
});

function make(): EngineInstance {
  const instance = new EngineInstance(module, memory, 3);
  calls = [];
  return instance;
}

/** Puts texts into memory; gives the place and size of each. */
function texts(...all: string[]): number[] {
  let at = TEXTS;
  return all.flatMap((text) => {
    const bytes = new TextEncoder().encode(text);
    new Uint8Array(memory.buffer).set(bytes, at);
    at += bytes.length;
    return [at - bytes.length, bytes.length];
  });
}

beforeEach(() => {
  calls = [];
  gives = { new: () => 16, mailbox: () => MAILBOX };
  mailbox.fill(NaN);
});

describe('the functions of the module', () => {
  it('are declared as they are defined', () => {
    const parameters = (text: string) => text.split(',').filter((part) => part.trim() !== '').length;
    const defined = [...source('wasm/exports.cpp').matchAll(/^EXPORT [^(]*\b(instance_\w+)\(([^)]*)\)/gm)];
    const declared = [...source('web/src/engine-module.d.ts').matchAll(/^ {2}_(instance_\w+)\(([^)]*)\)/gm)];
    expect(defined.length).toBeGreaterThan(30);
    expect(declared.map(([, name, list]) => [name, parameters(list!)])).toEqual(
      defined.map(([, name, list]) => [name, parameters(list!)]),
    );
  });
});

describe('what goes in', () => {
  it('is an instance with its threads', () => {
    new EngineInstance(module, memory, 3);
    expect(calls).toEqual([
      ['new', 3, 0],
      ['mailbox', 16],
    ]);
  });

  it('are options in their order, whatever order they are given in', () => {
    const given = Object.fromEntries(Object.keys(openOptions).map((name, i) => [name, i + 1]));
    const options = { kv: 2, ...given, ...{ streamAll: true, recheck: false }, fileSize: 2 ** 40, budget: 2 ** 31 };
    expect(make().open(options as never)).toBe(0);
    expect(calls).toEqual([['open', 16, 2 ** 31, 2 ** 40, 2]]);
    const names = Object.keys(openOptions);
    const row = names.map((name, i) => (name === 'streamAll' ? 1 : name === 'recheck' ? 0 : i + 1));
    expect([...mailbox.subarray(0, names.length + 1)]).toEqual([...row, NaN]);
  });

  it('are those of sampling, then those of a prompt', () => {
    const names = [...Object.keys(samplerOptions), ...Object.keys(promptOptions)];
    const options = Object.fromEntries(names.map((name, i) => [name, i / 2]));
    make().start({ ...options, textSize: 5, nTokens: 0, stopsSize: 7 } as never, 1);
    expect(calls).toEqual([['start', 16, 1, 5, 0, 7]]);
    expect([...mailbox.subarray(0, names.length + 1)]).toEqual([...names.map((_, i) => i / 2), NaN]);
  });

  it('are texts, one behind the other in the room that there is', () => {
    gives.stage = (_, size = 0) => (size <= 8 ? STAGING : 0);
    const parts = [Uint8Array.of(1, 2, 3), new Uint8Array(), Uint8Array.of(4)];
    expect(make().stage(parts, 4)).toBe(true);
    expect(calls).toEqual([['stage', 16, 8]]);
    expect([...new Uint8Array(memory.buffer, STAGING, 4)]).toEqual([1, 2, 3, 4]);
    expect(make().stage(parts, 5)).toBe(false);
    expect(make().stage([])).toBe(true);
    expect(calls).toEqual([['stage', 16, 1]]);
  });
});

describe('what comes out', () => {
  it('are numbers without a sign, above 2 GiB too', () => {
    gives = { ...gives, token: () => -1, crc32: () => -2 };
    expect(make().token()).toBe(2 ** 32 - 1);
    expect(make().crc32(2 ** 31 + 64, 8)).toBe(2 ** 32 - 2);
  });

  it('is a request, or none', () => {
    expect(make().nextRequest()).toBeUndefined();
    gives.next_request = () => {
      mailbox.set([2 ** 40, 1000, 7, 2 ** 31 + 64, 2 ** 32 - 1, 1]);
      return 1;
    };
    expect(make().nextRequest()).toEqual({
      ...{ offset: 2 ** 40, size: 1000, ticket: 7, into: 2 ** 31 + 64, crc: 2 ** 32 - 1, hasCrc: true },
    });
  });

  it('are statistics by their names, texts and lists among them', () => {
    const names = Object.keys(sessionStats);
    gives.stats = () => {
      const row = names.flatMap((name, i) => (name === 'isa' ? texts('sïmd') : name === 'kv' ? 2 : i));
      mailbox.set(row);
      return 0;
    };
    const expected = names.map((name, i) => [name, name === 'isa' ? 'sïmd' : name === 'kv' ? '8bit' : i]);
    expect(make().stats()).toEqual(Object.fromEntries(expected));
  });

  it('are lists, row by row until there is none', () => {
    const rows: [string, string, number][] = [
      ['matmul', '8bit', 3],
      ['add', '', 2 ** 40],
    ];
    gives.kernel_count = (_, index = 0) => {
      const row = rows[index];
      if (!row) return 0;
      mailbox.set([...texts(row[0], row[1]), row[2]]);
      return 1;
    };
    expect(Object.keys(kernelCount)).toEqual(['op', 'type', 'calls']);
    expect(make().kernelCounts()).toEqual(rows.map(([op, type, n]) => ({ op, type, calls: n })));
    expect(calls).toHaveLength(3);
    expect(make().segments()).toEqual([]);
  });

  it('are copies of texts and values', () => {
    gives.piece = () => void mailbox.set(texts('é'));
    const piece = make().piece();
    expect(new TextDecoder().decode(piece)).toBe('é');
    gives.embedding = () => {
      new Float32Array(memory.buffer, TEXTS, 2).set([0.5, -1]);
      return void mailbox.set([TEXTS, 8]);
    };
    expect(make().embedding()).toEqual(Float32Array.of(0.5, -1));
    expect(new TextDecoder().decode(piece)).toBe('é');
  });

  it('are ids of a text, or why there are none', () => {
    gives.tokenize = () => {
      new Uint32Array(memory.buffer, STAGING, 2).set([9, 8]);
      mailbox[0] = STAGING;
      return 2;
    };
    expect(make().tokenize(3, true)).toEqual(Uint32Array.of(9, 8));
    expect(calls).toEqual([['tokenize', 16, 3, 1]]);
    gives.tokenize = () => -18;
    expect(make().tokenize(3, false)).toBe(18);
  });
});

it('a deleted instance is deleted once', () => {
  const instance = make();
  instance.delete();
  instance.delete();
  expect(calls).toEqual([
    ['delete', 16],
    ['delete', 0],
  ]);
});
