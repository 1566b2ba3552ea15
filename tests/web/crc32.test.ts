import { crc32 as zlib } from 'node:zlib';

import { expect, it } from 'vitest';

import { crc32 } from '../../web/src/sources/crc32.js';
import { noise } from './fake-server.js';

it('is the published check value', () => {
  expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
});

it("is zlib's for every length and place of a cut", () => {
  const bytes = noise(100);
  for (let length = 0; length <= bytes.length; length++) {
    expect(crc32(bytes.subarray(0, length))).toBe(zlib(bytes.subarray(0, length)));
    expect(crc32(bytes.subarray(length), crc32(bytes.subarray(0, length)))).toBe(zlib(bytes));
  }
});
