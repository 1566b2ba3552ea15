// A GGUF file in two parts, as llama.cpp divides one: the first has the keys, the second the tensors.

const TEXT = 8;
const ARRAY = 9;
/** Bytes of the other types. */
const SIZES: Readonly<Record<number, number>> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const U16 = 2;
const HEADER = 24;
const ALIGNMENT = 32;

export function divided(file: Uint8Array<ArrayBuffer>, name: string): File[] {
  const view = new DataView(file.buffer, file.byteOffset);
  const u64 = (at: number) => Number(view.getBigUint64(at, true));
  const [nTensors, nKeys] = [u64(8), u64(16)];
  const text = (at: number) => at + 8 + u64(at);
  const value = (at: number, type: number): number => {
    if (type === TEXT) return text(at);
    if (type !== ARRAY) return at + SIZES[type]!;
    const element = view.getUint32(at, true);
    let end = at + 12;
    for (let i = u64(at + 4); i > 0; i--) end = value(end, element);
    return end;
  };
  let keys = HEADER;
  for (let i = 0; i < nKeys; i++) {
    const at = text(keys);
    keys = value(at + 4, view.getUint32(at, true));
  }
  let tensors = keys;
  for (let i = 0; i < nTensors; i++) {
    const at = text(tensors);
    tensors = at + 4 + 8 * view.getUint32(at, true) + 12;
  }
  const data = aligned(tensors);
  /** A part with keys of the file, or none, and with its tensors, or none. */
  const part = (number: number, own: Uint8Array, list: Uint8Array, weights: Uint8Array) => {
    const head = file.slice(0, HEADER);
    const numbers = new DataView(head.buffer);
    numbers.setBigUint64(8, BigInt(list.length > 0 ? nTensors : 0), true);
    numbers.setBigUint64(16, BigInt((own.length > 0 ? nKeys : 0) + 2), true);
    const front = joined([head, own, key('split.count', 2), key('split.no', number), list]);
    const padding = new Uint8Array(aligned(front.length) - front.length);
    return new File([joined([front, padding, weights])], `${name}-0000${number + 1}-of-00002.gguf`);
  };
  const none = new Uint8Array();
  return [
    part(0, file.subarray(HEADER, keys), none, none),
    part(1, none, file.subarray(keys, tensors), file.subarray(data)),
  ];
}

const aligned = (size: number) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** A key with a number of 16 bits. */
function key(name: string, number: number): Uint8Array {
  const out = new Uint8Array(8 + name.length + 6);
  const view = new DataView(out.buffer);
  view.setBigUint64(0, BigInt(name.length), true);
  out.set(new TextEncoder().encode(name), 8);
  view.setUint32(8 + name.length, U16, true);
  view.setUint16(12 + name.length, number, true);
  return out;
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
