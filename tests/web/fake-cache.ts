// A source of a model at an address, and a cache in place of the browser's files.
import { crc32 } from '../../web/src/sources/crc32.js';
import { HttpSource } from '../../web/src/sources/http-source.js';
import type { Identity } from '../../web/src/sources/journal.js';
import type { ModelCache } from '../../web/src/sources/model-cache.js';
import { RangeSet } from '../../web/src/sources/ranges.js';
import type { Piece } from '../../web/src/sources/source.js';
import type { FakeServer } from './fake-server.js';

export const URL_ = 'https://example.org/model.qsf';
export const SIZE = 1_000_000;
export const PIECE = 20_000;
/** Read without CRC, before the pieces. */
export const TABLES = 70_000;

/** The cache's contract over an array in place of the browser's files. */
export class FakeCache implements ModelCache {
  identity: Identity | undefined;
  verified = new RangeSet();
  complete = false;
  writable = true;
  owned = true;
  /** Whether the server agreed to the caller's headers before. */
  isAgreed = true;
  bytes = new Uint8Array(SIZE);
  /** Writes beyond are refused. */
  quota = Infinity;
  #written = 0;

  read(offset: number, into: Uint8Array<ArrayBuffer>): undefined {
    into.set(this.bytes.subarray(offset, offset + into.length));
  }
  agree(): void {
    this.isAgreed = true;
  }
  reset(identity: Identity): void {
    this.identity = identity;
    this.verified = new RangeSet();
    this.complete = false;
    this.bytes = new Uint8Array(identity.size);
  }
  write(offset: number, bytes: Uint8Array<ArrayBuffer>): boolean {
    this.#written += bytes.length;
    if (this.#written > this.quota) this.writable = false;
    if (this.writable) this.bytes.set(bytes, offset);
    return this.writable;
  }
  mark(offset: number, size: number): void {
    this.verified.add(offset, size);
  }
  drop(offset: number, size: number): void {
    this.verified.remove(offset, size);
    this.complete = false;
  }
  markComplete(): void {
    this.complete = true;
  }
  async close(): Promise<void> {
    this.writable = false;
  }
}

export function piecesOf(bytes: Uint8Array): (Piece & { crc: number })[] {
  const pieces: (Piece & { crc: number })[] = [];
  for (let offset = TABLES; offset < bytes.length; offset += PIECE) {
    const piece = bytes.subarray(offset, offset + PIECE);
    pieces.push({ offset, size: piece.length, crc: crc32(piece) });
  }
  return pieces;
}

export function open(server: FakeServer, cache?: ModelCache): Promise<HttpSource> {
  return HttpSource.open(URL_, cache, { fetch: server.fetch, retryDelay: 1 } as never);
}

export async function read(source: HttpSource, offset: number, size: number, crc?: number): Promise<Uint8Array> {
  const into = new Uint8Array(size);
  await source.read({ offset, into, crc });
  return into;
}

/** Opens as the engine does: tables first, which it accepts. */
export async function openModel(server: FakeServer, cache?: ModelCache): Promise<HttpSource> {
  const source = await open(server, cache);
  await read(source, 0, 128);
  await read(source, 128, TABLES - 128);
  source.accepted();
  return source;
}
