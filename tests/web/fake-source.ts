// A source that does as a test says.
import type { ByteSource, Piece, ReadPiece, SourceStats } from '../../web/src/sources/source.js';
import { pause } from './waiting.js';

/** Bytes that open() reads first. */
export const HEADER = 128;

/** The byte of every file at an offset. */
export const byteAt = (offset: number) => (offset * 31 + 7) & 0xff;

export class FakeSource implements ByteSource {
  size = HEADER + 3000;
  isWatched = false;
  keeps = true;
  byteAt = byteAt;
  onLoaded: (() => void) | undefined;
  /** How reads end: at once, after a while, when release() is called, or not at all. */
  mode: 'now' | 'later' | 'held' = 'now';
  /** Reads reject with this. */
  error: unknown;
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  kept: readonly Piece[] | undefined;
  hidden: readonly Piece[] | undefined;
  readonly pieces: ReadPiece[] = [];
  /** What keep() gives. */
  keeping: Promise<void> = Promise.resolve();
  loaded = 0;
  fromCache = 0;
  cacheState: SourceStats['cacheState'] = 'partial';
  onRestart: () => void = () => undefined;
  readonly #held: (() => void)[] = [];

  read(piece: ReadPiece): Promise<void> | undefined {
    const { offset, into } = piece;
    this.pieces.push(piece);
    const fill = () => {
      if (this.error !== undefined) throw this.error;
      for (let i = 0; i < into.length; i++) into[i] = this.byteAt(offset + i);
    };
    if (this.mode === 'held') return new Promise<void>((resolve) => this.#held.push(resolve)).then(fill);
    if (this.mode === 'later' || this.error !== undefined) return pause().then(fill);
    fill();
    return undefined;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Ends the reads that are held, or the first so many. */
  release(most = Infinity): void {
    for (const resolve of this.#held.splice(0, Math.min(most, this.#held.length))) resolve();
  }

  accepted(): void {
    this.calls.push('accepted');
  }
  rejected(offset: number, size: number): void {
    this.calls.push(`rejected ${String(offset)} ${String(size)}`);
  }
  keep(pieces: readonly Piece[]): Promise<void> {
    this.calls.push('keep');
    this.kept = pieces;
    return this.keeping;
  }
  hide(pieces: readonly Piece[]): void {
    this.hidden = pieces;
  }
  async restart(): Promise<void> {
    this.calls.push('restart');
    this.onRestart();
  }
  stats(): SourceStats {
    const none = { network: 0, blob: 0, requests: 0, cachedBytes: 0 };
    return { ...none, cacheState: this.cacheState, cache: this.fromCache, loaded: this.loaded };
  }
  async close(): Promise<void> {
    this.calls.push('close');
    this.release();
  }
}
