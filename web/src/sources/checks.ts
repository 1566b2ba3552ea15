// Bytes against the checksum that their file states.
import { QSFError } from '../errors.js';
import { crc32 } from './crc32.js';
import type { ReadPiece } from './source.js';

/** Whether bytes have their CRC; true if it is not known. */
export function isRight({ into, crc, crc32: own }: ReadPiece): boolean {
  return crc === undefined || (own?.() ?? crc32(into)) === crc;
}

/** Returns the error for bytes that are wrong each time that they are fetched. */
export function badPiece(url: string, offset: number, size: number): QSFError {
  return new QSFError(
    'bad_checksum',
    `the ${size} bytes at ${offset} of ${url} do not have the checksum that the file states`,
    { url },
  );
}
