import { afterEach, describe, expect, it, vi } from 'vitest';

import {
  BY_FOUR,
  BY_PAIRS,
  RELAXED_DOT,
  SIMD_DOT,
  detectThreads,
  detectVariant,
  probe,
  rounds,
} from '../../web/src/worker/detect.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('the probe modules', () => {
  // Assembled by hand from the WebAssembly binary format and the relaxed SIMD proposal's opcode 0x113.
  it('use the dots themselves', () => {
    expect(hex(RELAXED_DOT)).toBe(
      '0061736d01000000' + '01080160037b7b7b017b' + '03020100' + '070501016600000a0d010b00200020012002fd93020b',
    );
    expect(hex(SIMD_DOT)).toBe(
      '0061736d01000000' + '01070160027b7b017b' + '03020100' + '070501016600000a0b01090020002001fdba010b',
    );
  });

  it('are valid for an instruction that exists and invalid for one that does not', () => {
    expect(WebAssembly.validate(SIMD_DOT)).toBe(true);
    expect(WebAssembly.validate(probe(2, [0xfd, 0xff, 0x7f]))).toBe(false);
    // The operands are part of the question.
    expect(WebAssembly.validate(probe(3, [0xfd, 0xba, 0x01]))).toBe(false);
  });
});

describe('the rounds that are timed', () => {
  const run = (bytes: Uint8Array<ArrayBuffer>, n: number) => {
    const { f } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as { f: (n: number) => number };
    return f(n);
  };

  it('are as many as are asked for, of eight steps each', () => {
    // i32x4.add of codes, which are ones in each byte.
    const added = rounds((sum, codes) => [0x20, sum, 0x20, codes, 0xfd, 0xae, 0x01]);
    for (const n of [1, 2, 1000]) expect(run(added, n)).toBe((8 * n * 0x01010101) | 0);
  });

  it('have the dots that the kernels have', () => {
    expect(hex(BY_FOUR)).toContain('200120022001fd93022101'.repeat(8));
    expect(hex(BY_PAIRS)).toContain('20012002fd92022001fd8e012101'.repeat(8));
  });
});

describe('the variant', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it.each([
    { four: 1.6, pairs: 0.9, tick: 0.1, expected: 'relaxedpairs' },
    { four: 0.8, pairs: 0.9, tick: 0.1, expected: 'relaxed' },
    { four: 0.5, pairs: 1.6, tick: 0.1, expected: 'relaxed' },
    { four: 1.62, pairs: 0.9, tick: 1, expected: 'relaxedpairs' },
    { four: 1, pairs: 0.95, tick: 1, expected: 'relaxed' },
  ])('is $expected where rounds take $four and $pairs ms by a clock of $tick ms', ({ four, pairs, tick, expected }) => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => Math.floor((now += 0.001) / tick) * tick);
    class Module {
      constructor(readonly bytes: Uint8Array) {}
    }
    class Instance {
      readonly exports;
      constructor({ bytes }: Module) {
        const ms = bytes === BY_FOUR ? four : pairs;
        // Four products are compiled well after five calls, pairs after two. Each fourth call after the first loses the machine.
        const slow = bytes === BY_FOUR ? 5 : 2;
        let calls = 0;
        this.exports = {
          f: (rounds: number) => {
            const cause = calls++ < slow ? 3 : calls % 4 === 0 ? 20 : 1;
            now += (cause * ms * rounds) / 100_000;
          },
        };
      }
    }
    vi.stubGlobal('WebAssembly', { validate: () => true, Module, Instance });
    expect(detectVariant()).toBe(expected);
    expect(now).toBeLessThan(2000);
  });

  it('is that without relaxed SIMD elsewhere, and none without SIMD', () => {
    vi.stubGlobal('WebAssembly', { validate: (bytes: Uint8Array) => bytes === SIMD_DOT });
    expect(detectVariant()).toBe('simd');
    vi.stubGlobal('WebAssembly', { validate: () => false });
    expect(detectVariant).toThrow(expect.objectContaining({ code: 'unsupported_host' }));
  });
});

describe('the number of threads', () => {
  const isolated = (hardwareConcurrency: number) => ({ crossOriginIsolated: true, navigator: { hardwareConcurrency } });
  const plain = { crossOriginIsolated: false, navigator: { hardwareConcurrency: 16 } };

  it('is half of the processors, but two to four, where the page is isolated', () => {
    const given = [1, 2, 3, 4, 5, 6, 8, 10, 64].map((processors) => detectThreads(undefined, isolated(processors)));
    expect(given).toEqual([1, 2, 2, 2, 3, 3, 4, 4, 4]);
  });

  it('is one where the page is not isolated, or does not tell', () => {
    expect(detectThreads(undefined, plain)).toBe(1);
    expect(detectThreads(undefined, {})).toBe(1);
    expect(detectThreads(undefined, { crossOriginIsolated: true })).toBe(1);
  });

  it('is what is wanted, however many processors there are', () => {
    for (const threads of [1, 3, 8]) expect(detectThreads(threads, isolated(2))).toBe(threads);
    expect(detectThreads(1, plain)).toBe(1);
  });

  it('is refused with a reason', () => {
    expect(() => detectThreads(2, plain)).toThrow(expect.objectContaining({ code: 'unsupported_host' }));
  });
});
