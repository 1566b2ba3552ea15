// What feeds the engine.
import type { Stats } from '../types.js';

export interface ReadPiece {
  offset: number;
  into: Uint8Array;
  /** CRC-32 of the bytes; undefined where only the engine can tell whether they are right. */
  crc: number | undefined;
  /** Computes the CRC-32 of what `into` holds, where that can be done faster than in JavaScript. */
  crc32?: () => number;
}

export interface Piece {
  offset: number;
  size: number;
  crc: number;
}

export interface SourceStats extends Pick<
  Stats['io'],
  'network' | 'cache' | 'blob' | 'requests' | 'cacheState' | 'cachedBytes'
> {
  /** Bytes that are here and verified. */
  loaded: number;
}

export interface ByteSource {
  /** Of the whole file. */
  readonly size: number;
  /** Called when stats().loaded has grown. */
  onLoaded: (() => void) | undefined;
  /** Fills `into`; undefined when it is done already, without waiting. */
  read(piece: ReadPiece): Promise<void> | undefined;
  /**
   * Settles reads that another thread has ended, which no message tells of; whether there were any, undefined where none is
   * under way. Sleeps so many milliseconds at most until there is one.
   */
  poll?(ms: number): boolean | undefined;
  /** The engine found the bytes of all reads without CRC to be right. */
  accepted(): void;
  /** The engine found the bytes of a read to be wrong. */
  rejected(offset: number, size: number): void;
  /** Fetches what of these pieces is not kept yet, behind the engine's own reads. Resolves when all are. */
  keep(pieces: readonly Piece[]): Promise<void>;
  /** Forgets what is kept and begins the file anew, whose size may be another. */
  restart(): Promise<void>;
  stats(): SourceStats;
  /** Ends every read under way; they reject. */
  close(): Promise<void>;
}
