// The beginning of a model's file, fetched in one request before anyone knows how long its front is. The front comes
// first, and weights go on arriving while the front is read, which leaves the thread no time to request them.
import { KiB, MiB } from '../constants.js';
import type { ByteSource } from './source.js';

/**
 * Bytes that are fetched before they are needed, at most: a model that is refused costs no more than these, and a share
 * of a small one.
 */
const MOST = 8 * MiB;
const SHARE = 8;
/** Bytes of a part, which can be used when it is there. */
const PART = 256 * KiB;

interface Part {
  offset: number;
  bytes: Uint8Array;
  /** Undefined once the bytes are here. */
  arriving: Promise<void> | undefined;
}

export class Early {
  readonly #source: ByteSource;
  readonly #most: number;
  /** In file order, without gaps. */
  #parts: Part[] = [];
  #isFront = true;

  /** Begins to fetch if the source has the first bytes and streams others. */
  constructor(source: ByteSource) {
    const { head } = source;
    this.#source = source;
    this.#most = Math.min(MOST, source.size / SHARE);
    if (!head) return;
    this.#parts.push({ offset: 0, bytes: head, arriving: undefined });
    this.#begin(head.length, this.#most);
  }

  #begin(offset: number, size: number): void {
    const end = Math.min(this.#source.size, offset + size);
    const parts: Part[] = [];
    for (let at = offset; at < end; at += PART)
      parts.push({ offset: at, bytes: new Uint8Array(Math.min(PART, end - at)), arriving: undefined });
    const arriving =
      this.#source.stream?.(
        offset,
        parts.map(({ bytes }) => bytes),
      ) ?? [];
    for (const [i, came] of arriving.entries()) {
      const part = parts[i]!;
      part.arriving = came.then(() => (part.arriving = undefined));
      part.arriving.catch(() => {}); // whoever reads it requests it again
      this.#parts.push(part);
    }
  }

  /** Fills `into`. Requests the bytes that were not fetched early. */
  async read(offset: number, into: Uint8Array): Promise<void> {
    const end = offset + into.length;
    const direct = async (from: number, to: number) =>
      from < to &&
      (await this.#source.read({ offset: from, into: into.subarray(from - offset, to - offset), crc: undefined }));
    const copies: Promise<unknown>[] = [];
    let at = offset;
    for (const part of this.#parts) {
      const [from, to] = [Math.max(at, part.offset), Math.min(end, endOf(part))];
      if (from >= to) continue;
      copies.push(direct(at, from));
      const copy = () => into.set(part.bytes.subarray(from - part.offset, to - part.offset), from - offset);
      if (part.arriving) copies.push(part.arriving.then(copy, () => direct(from, to)));
      else copy();
      at = to;
    }
    const goesOn = this.#isFront && at > offset && at < end;
    copies.push(direct(at, end));
    if (goesOn) {
      this.#parts = this.#parts.filter((part) => endOf(part) > offset);
      this.#begin(end, this.#most);
    }
    await Promise.all(copies);
    // Weights are read once, and those of the front with its parts.
    if (!this.#isFront) this.#parts = this.#parts.filter((part) => endOf(part) <= offset || endOf(part) > end);
  }

  /** Gives back the front's memory. Weights begin at `offset`. */
  endFront(offset: number): void {
    this.#isFront = false;
    this.#parts = this.#parts.filter((part) => endOf(part) > offset);
  }

  /** Fetches half as much again, because the model's kind is known, while the engine reads the front. */
  goOn(): void {
    const last = this.#parts.at(-1);
    if (last) this.#begin(endOf(last), this.#most / 2);
  }

  /** Gives back all memory. */
  forget(): void {
    this.#isFront = false;
    this.#parts = [];
  }
}

const endOf = ({ offset, bytes }: Part): number => offset + bytes.length;
