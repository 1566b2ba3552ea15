import { describe, expect, it } from 'vitest';

import { RELAXED_DOT, SIMD_DOT, detectThreads, probe } from '../../web/src/detect.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('the probe modules', () => {
  // Assembled by hand from the WebAssembly binary format and the relaxed SIMD proposal's opcode 0x113.
  it('use the dots themselves', () => {
    expect(hex(RELAXED_DOT)).toBe(
      '0061736d01000000' + '01080160037b7b7b017b' + '03020100' + '0a0d010b00200020012002fd93020b',
    );
    expect(hex(SIMD_DOT)).toBe('0061736d01000000' + '01070160027b7b017b' + '03020100' + '0a0b01090020002001fdba010b');
  });

  it('are valid for an instruction that exists and invalid for one that does not', () => {
    expect(WebAssembly.validate(SIMD_DOT)).toBe(true);
    expect(WebAssembly.validate(probe(2, [0xfd, 0xff, 0x7f]))).toBe(false);
    // The operands are part of the question.
    expect(WebAssembly.validate(probe(3, [0xfd, 0xba, 0x01]))).toBe(false);
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
