import { describe, expect, it } from 'vitest';

import { RELAXED_DOT, SIMD_DOT, probe } from '../../web/src/detect.js';

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
