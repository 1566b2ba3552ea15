// The description of tensors at the front of a GGUF file (version 2 or 3), to count the bytes of their data.
import { readFileSync } from 'node:fs';

const scalarBytes = [1, 1, 2, 2, 4, 4, 4, 1, null, null, 8, 8, 8]; // by a value's type
const textType = 8;
const listType = 9;

/**
 * Returns `{ tensors: [{ name, type, weights, columns, bytes }], weights, bytes, fileBytes }` of a file; type is GGML's
 * number.
 */
export function readGguf(path) {
  const file = readFileSync(path);
  let at = 0;
  const u32 = () => file.readUInt32LE((at += 4) - 4);
  const u64 = () => Number(file.readBigUInt64LE((at += 8) - 8));
  const text = () => {
    const length = u64();
    return file.toString('utf8', at, (at += length));
  };
  const value = (type) => {
    if (type === textType) return text();
    if (type === listType) {
      const of = u32();
      for (let left = u64(); left > 0; left -= 1) value(of);
      return null;
    }
    const begin = at;
    at += scalarBytes[type];
    return scalarBytes[type] === 4 ? file.readUInt32LE(begin) : null;
  };
  if (file.toString('latin1', 0, 4) !== 'GGUF') throw new Error(`${path} is no GGUF file`);
  at = 8;
  const count = u64();
  let alignment = 32;
  for (let left = u64(); left > 0; left -= 1) {
    const key = text();
    const told = value(u32());
    if (key === 'general.alignment') alignment = told;
  }
  const tensors = Array.from({ length: count }, () => {
    const name = text();
    const shape = Array.from({ length: u32() }, u64);
    return { name, type: u32(), weights: shape.reduce((a, b) => a * b, 1), columns: shape[0], offset: u64() };
  });
  const begin = Math.ceil(at / alignment) * alignment;
  const ordered = [...tensors].sort((a, b) => a.offset - b.offset);
  ordered.forEach((tensor, i) => {
    tensor.bytes = (ordered[i + 1]?.offset ?? file.length - begin) - tensor.offset;
  });
  const sum = (key) => tensors.reduce((total, tensor) => total + tensor[key], 0);
  return { tensors, weights: sum('weights'), bytes: sum('bytes'), fileBytes: file.length };
}
