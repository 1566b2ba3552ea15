// The kinds of files by their first bytes.

/** Bytes by which a kind is recognized. */
export const MAGIC_BYTES = 4;

/**
 * Whether a file with these first bytes must be made. Other files are left to the engine, which refuses those that it
 * does not know.
 */
export const isOfOtherKind = (head: Uint8Array): boolean =>
  new TextDecoder('latin1').decode(head.subarray(0, MAGIC_BYTES)) === 'GGUF';
