// CRC-32 (IEEE 802.3, as in zlib), eight bytes at a time (Kounavis and Berry 2005, "slicing-by-8").
const SLICES = 8;
const tables: Int32Array[] = [];

for (let slice = 0; slice < SLICES; slice++) tables.push(new Int32Array(256));
for (let i = 0; i < 256; i++) {
  let value = i;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  tables[0]![i] = value;
}
for (let slice = 1; slice < SLICES; slice++) {
  for (let i = 0; i < 256; i++) {
    const before = tables[slice - 1]![i]!;
    tables[slice]![i] = (before >>> 8) ^ tables[0]![before & 0xff]!;
  }
}

/** Returns the CRC-32 of `bytes`, continued from `crc` (0 to begin), as an unsigned number. */
export function crc32(bytes: Uint8Array, crc = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  let value = ~crc;
  let at = 0;
  const whole = bytes.length - (bytes.length % SLICES);
  for (; at < whole; at += SLICES) {
    value ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    value =
      t7[value & 0xff]! ^
      t6[(value >>> 8) & 0xff]! ^
      t5[(value >>> 16) & 0xff]! ^
      t4[value >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) value = (value >>> 8) ^ t0[(value ^ bytes[at]!) & 0xff]!;
  return ~value >>> 0;
}
