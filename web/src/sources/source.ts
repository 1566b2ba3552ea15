// The interface of everything that the engine's bytes come from.
import type { Stats } from '../types.js';

export interface ReadPiece {
  offset: number;
  into: Uint8Array;
  /** CRC-32 of the bytes; undefined if only the engine can check them. */
  crc: number | undefined;
  /** Computes the CRC-32 of the bytes in `into`, if that can be faster than in JavaScript. */
  crc32?: () => number;
}

export interface Piece {
  offset: number;
  size: number;
  /** As ReadPiece's. */
  crc: number | undefined;
}

export interface SourceStats extends Pick<
  Stats['io'],
  'network' | 'cache' | 'blob' | 'requests' | 'cacheState' | 'cachedBytes'
> {
  /** Bytes that are present and verified. */
  loaded: number;
  /** For a made file: the kind of the model, and the bytes of memory that making takes. */
  made?: { kind: string; bytes: number };
}

export interface ByteSource {
  /** Size of the whole file in bytes. */
  readonly size: number;
  /** Whether others, such as a server, see which bytes are read from now on. */
  readonly isWatched: boolean;
  /** Whether the source makes the bytes of segments itself, so that the file may not state their checksums. */
  readonly makes?: boolean;
  /** The first bytes, if they are here. */
  readonly head?: Uint8Array | undefined;
  /** Whether keep() has room for pieces, as far as is known. */
  readonly keeps: boolean;
  /** Called when stats().loaded has grown. */
  onLoaded: (() => void) | undefined;
  /** Fills `into`. Undefined if it is done already, without waiting. */
  read(piece: ReadPiece): Promise<void> | undefined;
  /**
   * Fills parts that follow each other from `offset` on, by one request, and returns when each is full. Undefined if that
   * has no use.
   */
  stream?(offset: number, parts: readonly Uint8Array[]): Promise<void>[] | undefined;
  /**
   * Settles reads that another thread has finished without a message. Waits at most `ms` milliseconds for one. Returns
   * whether there were any; undefined if none is under way.
   */
  poll?(ms: number): boolean | undefined;
  /** Called when the engine has found the bytes of all reads without CRC to be right. */
  accepted(): void;
  /** Called when the engine has found the bytes of a read to be wrong. */
  rejected(offset: number, size: number): void;
  /** Fetches those of the pieces that are not kept yet, after the engine's own reads. Resolves when all are kept. */
  keep(pieces: readonly Piece[]): Promise<void>;
  /** Marks pieces whose reads depend on the text. Their reads fail if a server would see them. */
  hide?(pieces: readonly Piece[]): void;
  /** Gives back memory that only further reads need. Such a read takes it again. */
  rest?(): void;
  /** Forgets all kept bytes and begins the file again. Its size may differ. */
  restart(): Promise<void>;
  stats(): SourceStats;
  /** Ends every read under way; they reject. */
  close(): Promise<void>;
}
