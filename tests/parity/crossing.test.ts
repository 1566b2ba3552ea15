// What crosses between JavaScript and the module: values as boundary.def declares them, and memory that does not run out.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import { generated } from '../../scripts/gen-boundary.mjs';
import { kvTypes, regions } from '../../web/src/boundary.gen.js';
import type { SamplerOptions } from '../../web/src/boundary.gen.js';
import type { SamplingLists } from '../../web/src/contract.js';
import type { EngineModule } from '../../web/src/wasm/engine.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import { Fed, convert, folder, program, stage, startModule, stories } from './module.js';

const MiB = 1024 * 1024;
/** With room for a part of the weights, so that the rest is streamed. */
const MEMORY = 6 * MiB;

const file = stories();
let memory: WebAssembly.Memory;
let module: EngineModule;
let fed: Fed;

beforeEach(async () => {
  ({ module, memory } = await startModule(MEMORY));
  fed = new Fed({ module, memory }, file);
});

/** Returns the tokens that the native program generates after three tokens. */
function native(...how: string[]): number[] {
  const model = convert('models/stories', 'stories-8bit.qsf');
  const receipt = join(folder, 'crossing.json');
  const all = [model, '--tokens', '5,6,7', '--ignore-eos', '--receipt', receipt, ...how];
  execFileSync(program('qsf-run'), all, { stdio: 'ignore' });
  return (JSON.parse(readFileSync(receipt, 'utf8')) as { generated_tokens: number[] }).generated_tokens;
}

/** The fields of an interface among the declarations. */
function fields(type: string): string[] {
  const text = generated()['web/src/session.gen.ts']!;
  const body = new RegExp(`interface ${type} \\{\\n((?:.|\\n)*?)\\n\\}`).exec(text)![1]!;
  return [...body.matchAll(/^ {2}(\w+)[:(]/gm)].map(([, name]) => name!);
}

describe('what is declared', () => {
  it('are the calls that the class has', () => {
    expect(fields('Session').length).toBeGreaterThan(20);
    for (const name of fields('Session')) expect(fed.session, name).toHaveProperty(name, expect.any(Function));
  });

  it('are the fields of what is told', () => {
    expect(fed.open(MEMORY)).toBeUndefined();
    const { session } = fed;
    session.preload();
    expect(session.step()).toBe('need_bytes');
    const request = session.nextRequest();
    expect(fed.open(MEMORY)).toBeUndefined();
    fed.start([5, 6, 7], { maxTokens: 1 });
    fed.generate();
    for (const [type, value] of [
      ['SessionStats', session.stats()],
      ['SequenceStats', session.sequenceStats(0)],
      ['ReadRequest', request],
      ['Segment', session.segments()[0]],
      ['RegionBytes', session.memoryMap()[0]],
      ['KernelCount', session.kernelCounts()[0]],
      ['Failure', session.rewind(1000, 0)],
    ] as const) {
      expect(value, type).toBeDefined();
      expect(Object.keys(value!), type).toEqual(fields(type));
    }
  });
});

describe('what goes in', () => {
  it('are the options of an opening, and the choice of a KV type', () => {
    for (const kv of kvTypes) {
      const options = { maxSeqLen: 65, sequences: 2, chunk: 4, ringSlots: 3, streamAll: true };
      expect(fed.open(MEMORY, options, kv)).toBeUndefined();
      const stats = fed.session.stats();
      expect(stats).toMatchObject({ kv, maxSeqLen: 65, sequences: 2, chunk: 4, ringSlots: 3, budget: MEMORY });
      expect(stats.modelBytes).toBe(file.length);
    }
    expect(fed.open(MEMORY)).toBeUndefined();
    expect(kvTypes).toContain(fed.session.stats().kv);
    const pinned = fed.session.stats().pinnedSegments;
    expect(fed.open(MEMORY, { streamAll: true })).toBeUndefined();
    expect(fed.session.stats().pinnedSegments).toBeLessThan(pinned);
  });

  it('are whole numbers up to 2^53 - 1', () => {
    expect(fed.open(MEMORY)).toBeUndefined();
    const made = (seed: number) => {
      fed.session.rewind(0, 0);
      expect(fed.start([5, 6, 7], { seed, temperature: 2, topK: 0, topP: 1, maxTokens: 24, ignoreEos: true })).toBe(
        undefined,
      );
      return fed.generate().tokens;
    };
    const how = ['--temperature', '2', '--top-k', '0', '--top-p', '1', '-n', '24'];
    for (const seed of [1, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER])
      expect(made(seed)).toEqual(native(...how, '--seed', String(seed)));
  });

  it('are the options and lists of sampling', () => {
    expect(fed.open(MEMORY)).toBeUndefined();
    const made = (options: Partial<SamplerOptions>, lists: Partial<SamplingLists> = {}) => {
      fed.session.rewind(0, 0);
      expect(fed.sampling({ biases: [], samplers: undefined, breakers: undefined, ...lists })).toBeUndefined();
      expect(fed.start([5, 6, 7], { maxTokens: 40, ignoreEos: true, ...options })).toBeUndefined();
      return fed.generate().tokens;
    };
    const all: [Partial<SamplerOptions>, Partial<SamplingLists>, string][] = [
      [
        { temperature: 1.5, topK: 0, topP: 1, minP: 0.02, typicalP: 0.95, topNSigma: 2.5 },
        { samplers: ['top_n_sigma', 'typical_p', 'min_p', 'temperature'] },
        '--temp 1.5 --top-k 0 --top-p 1 --min-p 0.02 --typical 0.95 --top-nsigma 2.5 --samplers top_n_sigma;typ_p;min_p;temp',
      ],
      [
        { temperature: 2, repetitionPenalty: 1.2, presencePenalty: 0.3, frequencyPenalty: -0.1, repeatLastN: 20 },
        {
          biases: [
            [300, 2.5],
            [301, -Infinity],
          ],
        },
        '--temp 2 --repeat-penalty 1.2 --presence-penalty 0.3 --frequency-penalty -0.1 --repeat-last-n 20 -l 300+2.5 -l 301-inf',
      ],
      [
        { temperature: 2, dryMultiplier: 0.8, dryAllowedLength: 1, xtcProbability: 0.5, xtcThreshold: 0.02 },
        { breakers: [' the', 'a'] },
        '--temp 2 --dry-multiplier 0.8 --dry-allowed-length 1 --xtc-probability 0.5 --xtc-threshold 0.02',
      ],
      [
        { dynatempRange: 0.5, dynatempExponent: 0.7, mirostat: 1, mirostatTau: 4 },
        {},
        '--dynatemp-range 0.5 --dynatemp-exp 0.7 --mirostat 1 --mirostat-ent 4',
      ],
      [{ mirostat: 2, mirostatTau: 6, mirostatEta: 0.3 }, {}, '--mirostat 2 --mirostat-ent 6 --mirostat-lr 0.3'],
    ];
    for (const [options, lists, how] of all) {
      const breakers = (lists.breakers ?? []).flatMap((text) => ['--dry-sequence-breaker', text]);
      expect(made({ ...options, seed: 3 }, lists), how).toEqual(
        native('-n', '40', '--seed', '3', ...how.split(' '), ...breakers),
      );
    }
    // The next generation has the lists that it is given, or none.
    expect(made({ temperature: 0 }, { biases: [[300, 1e9]] })).toEqual(Array(40).fill(300));
    expect(made({ temperature: 0 })).toEqual(native('-n', '40', '--temp', '0'));
    expect(fed.sampling({ biases: [], samplers: ['no' as never], breakers: undefined })).toMatchObject({
      sentence: "there is no sampler 'no'",
    });
    expect(
      fed.sampling({ biases: [[2048, 1]], samplers: ['top_k', 'top_k'], breakers: Array(17).fill('x') }),
    ).toBeUndefined();
    expect(fed.start([5], {})).toMatchObject({ sentence: 'the sampler top_k is named twice' });
  });

  it('are a text and stop strings', () => {
    expect(fed.open(MEMORY)).toBeUndefined();
    expect(fed.start('Once upon a time', { temperature: 0, maxTokens: 40 })).toBeUndefined();
    const { text } = fed.generate();
    const stop = text.slice(20, 26);
    fed.session.rewind(0, 0);
    expect(fed.start('Once upon a time', { temperature: 0, maxTokens: 40 }, ['\u{1f40b}', stop])).toBeUndefined();
    expect(fed.generate().text).toBe(text.slice(0, text.indexOf(stop)));
    expect(fed.session.end(0)).toBe('stop');
  });
});

describe('what comes out', () => {
  it('are requests for bytes of the file, and their CRC where they are', () => {
    const { session } = fed;
    expect(fed.open(MEMORY)).toBeUndefined();
    session.preload();
    expect(session.step()).toBe('need_bytes');
    const request = session.nextRequest()!;
    const { offset, size, into, crc, hasCrc, ticket } = request;
    expect(session.segments()).toContainEqual(expect.objectContaining({ offset, size, crc, pinned: true }));
    expect(hasCrc).toBe(true);
    const place = new Uint8Array(memory.buffer, into, size);
    place.set(file.subarray(offset, offset + size));
    expect(session.crc32(into, size)).toBe(crc);
    place[0]! ^= 1;
    expect(session.crc32(into, size)).not.toBe(crc);
    expect(session.crc32(into, MEMORY)).toBe(0);
    expect(session.complete(ticket)).toMatchObject({ code: errorNumbers.bad_checksum });
    expect(session.step()).toBe('error');
    expect(session.error()).toMatchObject({ code: errorNumbers.bad_checksum });
  });

  it('is the digest of what was staged in parts, and then of the next file', () => {
    const { session } = fed;
    for (const parts of [[file.subarray(0, 1000), file.subarray(1000, 5000)], [file.subarray(7, 70)], []]) {
      for (const part of parts) {
        session.stage(part.length)!.set(part);
        session.addToDigest(part.length);
      }
      const sum = createHash('sha256');
      for (const part of parts) sum.update(part);
      expect(session.digest()).toBe(sum.digest('hex'));
    }
    session.addToDigest(1); // nothing is staged
    expect(session.digest()).toBe(createHash('sha256').digest('hex'));
    expect(fed.open(MEMORY)).toBeUndefined();
  });

  it('is why a request failed, as its host says', () => {
    const { session } = fed;
    expect(fed.open(MEMORY)).toBeUndefined();
    session.preload();
    session.step();
    const { ticket } = session.nextRequest()!;
    const sentence = new TextEncoder().encode('Größe 7 fehlt.');
    stage(session, sentence);
    session.fail(ticket, errorNumbers.network_error, sentence.length);
    expect(session.step()).toBe('error');
    expect(session.error()).toEqual({ code: errorNumbers.network_error, sentence: 'Größe 7 fehlt.' });
  });

  it('are regions of memory that make up the budget', () => {
    expect(fed.open(MEMORY)).toBeUndefined();
    const map = fed.session.memoryMap();
    for (const { region } of map) expect(regions).toContain(region);
    expect(map.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(MEMORY);
  });

  it('are token ids, or why there are none, and what tokens stand for', () => {
    const { session } = fed;
    expect(fed.open(MEMORY)).toBeUndefined();
    const text = new TextEncoder().encode('Größe \u{1f40b}');
    const room = session.stage(text.length + 4 * (text.length + 8) + 3)!;
    room.set(text);
    const ids = session.tokenize(text.length, true) as Uint32Array;
    expect(ids).toBeInstanceOf(Uint32Array);
    const bytes = [...ids.slice()].flatMap((id) => [...session.detokenize(id, false)]);
    expect(new TextDecoder().decode(Uint8Array.from(bytes)).trim()).toBe('Größe \u{1f40b}');
    session.stage(1);
    expect(session.tokenize(1, true)).toMatchObject({ code: expect.any(Number) as number });
  });

  it("are the model's special tokens and the texts of its metadata", () => {
    const { session } = fed;
    expect(fed.open(MEMORY)).toBeUndefined();
    const shown = (id: number, special: boolean) => new TextDecoder().decode(session.detokenize(id, special).slice());
    expect(session.beginToken()).toBeUndefined();
    expect([...session.endTokens()]).toEqual([0]);
    expect([shown(0, true), shown(0, false)]).toEqual(['<|endoftext|>', '']);
    const metadata = (key: string) => {
      const name = new TextEncoder().encode(key);
      stage(session, name);
      return session.metadata(name.length);
    };
    expect(metadata('general.architecture')).toBe('llama');
    expect(metadata('chat.template')).toBe('');
    expect(metadata('gen')).toBe('');
  });
});

describe('memory', () => {
  /** Bytes of the longest text that stage() takes: the longest block that is free outside the arena. */
  function room(): number {
    let [fits, not] = [0, MEMORY];
    while (not - fits > 1) {
      const size = Math.floor((fits + not) / 2);
      if (fed.session.stage(size)) fits = size;
      else not = size;
    }
    fed.session.stage(0);
    return fits;
  }
  const handles = () => (module as unknown as { count_emval_handles(): number }).count_emval_handles();

  it('is as it was after 100,000 calls', () => {
    const { session } = fed;
    expect(fed.open(MEMORY, { maxSeqLen: 64 })).toBeUndefined();
    const generate = () => {
      session.rewind(0, 0);
      fed.start([5, 6, 7], { maxTokens: 20, ignoreEos: true, logitsHash: true }, ['never said']);
      return fed.generate();
    };
    const all = () => {
      session.stats();
      session.sequenceStats(0);
      session.memoryMap();
      session.kernelCounts();
      session.segments();
      session.modelHash();
      session.logitsHash(0);
      session.rewind(1_000_000, 0);
      session.complete(1_000_000);
      session.error();
      session.detokenize(7, true);
      session.end(0);
      stage(session, new TextEncoder().encode('Once upon a time'));
      session.tokenize(4, true);
    };
    generate();
    all();
    const before = [room(), handles()];
    for (let i = 0; i < 7000; ++i) all();
    for (let i = 0; i < 60; ++i) generate();
    expect([room(), handles()]).toEqual(before);
  });

  it('is left for the calls, however much is staged', () => {
    expect(fed.open(MEMORY, { maxSeqLen: 64 })).toBeUndefined();
    const { session } = fed;
    const first = session.stats();
    expect(session.stage(room())!.length).toBeGreaterThan(100_000);
    expect(session.stats()).toEqual(first);
    expect(session.rewind(1_000_000, 0)).toMatchObject({ sentence: expect.stringContaining('1000000') as string });
    expect(session.segments().length).toBe(first.segments);
    // Nothing was written where nothing is.
    expect(new Uint8Array(memory.buffer, 0, 16)).toEqual(new Uint8Array(16));
  });

  it('holds what the module itself needs, whatever the arena', () => {
    expect(fed.open(MEMORY, { maxSeqLen: 64 })).toBeUndefined();
    expect(room()).toBeGreaterThan(256 * 1024);
  });
});
