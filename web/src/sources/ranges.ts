// Byte ranges: sets of them, and the merging of wanted ranges into requests of a sensible size.

export interface Range {
  offset: number;
  size: number;
}

/** A set of byte positions, stored as sorted ranges that do not touch. */
export class RangeSet {
  #begins: number[] = [];
  #ends: number[] = [];

  get total(): number {
    return this.#ends.reduce((sum, end, i) => sum + end - this.#begins[i]!, 0);
  }

  /** Yields [begin, end) pairs in order. */
  *[Symbol.iterator](): Generator<[number, number]> {
    for (let i = 0; i < this.#begins.length; i++) yield [this.#begins[i]!, this.#ends[i]!];
  }

  covers(offset: number, size: number): boolean {
    if (size === 0) return true;
    const i = this.#firstEndingAfter(offset);
    return i < this.#begins.length && this.#begins[i]! <= offset && this.#ends[i]! >= offset + size;
  }

  add(offset: number, size: number): void {
    if (size === 0) return;
    let begin = offset;
    let end = offset + size;
    const first = this.#firstEndingAfter(begin - 1);
    let last = first;
    while (last < this.#begins.length && this.#begins[last]! <= end) {
      begin = Math.min(begin, this.#begins[last]!);
      end = Math.max(end, this.#ends[last]!);
      last++;
    }
    this.#begins.splice(first, last - first, begin);
    this.#ends.splice(first, last - first, end);
  }

  remove(offset: number, size: number): void {
    if (size === 0) return;
    const end = offset + size;
    const first = this.#firstEndingAfter(offset);
    const kept: [number, number][] = [];
    let last = first;
    while (last < this.#begins.length && this.#begins[last]! < end) {
      if (this.#begins[last]! < offset) kept.push([this.#begins[last]!, offset]);
      if (this.#ends[last]! > end) kept.push([end, this.#ends[last]!]);
      last++;
    }
    this.#begins.splice(first, last - first, ...kept.map(([begin]) => begin));
    this.#ends.splice(first, last - first, ...kept.map(([, stop]) => stop));
  }

  /** Returns the index of the first range whose end is greater than `at`. */
  #firstEndingAfter(at: number): number {
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ends[middle]! > at) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Returns the largest end of some ranges. */
export const endOf = (ranges: readonly Range[]): number =>
  ranges.reduce((end, { offset, size }) => Math.max(end, offset + size), 0);

export interface MergeLimits {
  /** Most bytes of one request. */
  bytes: number;
  /** Most unwanted bytes between two wanted ranges of one request. */
  gap: number;
}

/**
 * Takes from `wanted` its first range and those that follow it in the file closely enough to share one request, in file
 * order. Takes the first range even if it alone exceeds the limit.
 */
export function takeRun<R extends Range>(wanted: R[], limits: MergeLimits): R[] {
  const first = wanted[0];
  if (!first) return [];
  const later = wanted.filter((r) => r.offset >= first.offset).sort((a, b) => a.offset - b.offset);
  const run: R[] = [];
  let end = first.offset;
  for (const range of later) {
    const rangeEnd = Math.max(end, range.offset + range.size);
    if (run.length > 0 && (range.offset - end > limits.gap || rangeEnd - first.offset > limits.bytes)) break;
    run.push(range);
    end = rangeEnd;
  }
  const taken = new Set(run);
  for (let i = wanted.length - 1; i >= 0; i--) if (taken.has(wanted[i]!)) wanted.splice(i, 1);
  return run;
}
