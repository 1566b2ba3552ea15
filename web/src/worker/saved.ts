// A sequence as a file, and back: docs/reference/format-session.md. The engine checks everything except the note.
import { QSFError } from '../errors.js';
import { MiB } from '../constants.js';
import { crc32 } from '../sources/crc32.js';
import type { Engine } from '../wasm/engine.js';
import type { ChatMessage, Restored } from '../types.js';

/** Bytes of a file's header, saved.h's kSavedHeaderSize. */
const HEADER = 128;
/** Bytes that are in JavaScript's memory at once; a browser may keep the rest of a Blob on the disk. */
const AT_ONCE = 4 * MiB;

/** Returns the file of a sequence, with messages as JSON in its note if there are any. */
export function savedSequence(engine: Engine, sequence: number, messages: string): Blob {
  const rest = engine.rest(sequence);
  const note = {
    ...(rest !== '' && { rest }),
    ...(messages !== '' && { messages: JSON.parse(messages) as unknown }),
  };
  const bytes = new TextEncoder().encode(Object.keys(note).length > 0 ? JSON.stringify(note) : '');
  const blobs: Blob[] = [];
  let parts: Uint8Array<ArrayBuffer>[] = [engine.beginSave(bytes, sequence), bytes];
  for (let size = 0; ;) {
    const piece = engine.savedPiece();
    parts.push(piece);
    size += piece.length;
    if (piece.length > 0 && size < AT_ONCE) continue;
    blobs.push(new Blob(parts));
    if (piece.length === 0) return new Blob(blobs);
    parts = [];
    size = 0;
  }
}

/** Replaces a sequence by that of a file. */
export async function restoreSequence(engine: Engine, sequence: number, file: Blob): Promise<Restored> {
  const { tokens, noteBytes, noteCrc } = engine.beginRestore(await read(file, 0, HEADER), file.size, sequence);
  const bytes = await read(file, HEADER, noteBytes);
  if (crc32(bytes) !== noteCrc)
    throw new QSFError('bad_checksum', "the saved sequence's note does not have the CRC-32 that its header states");
  const { rest, messages } = noteOf(bytes);
  for (;;) {
    for (let at = HEADER + noteBytes; at < file.size; at += AT_ONCE) {
      if (!engine.restore(await read(file, at, AT_ONCE), sequence, rest)) continue;
      return { position: tokens, sequence, ...(messages && { messages }) };
    }
  }
}

async function read(file: Blob, at: number, size: number): Promise<Uint8Array> {
  try {
    return new Uint8Array(await file.slice(at, at + size).arrayBuffer());
  } catch (cause) {
    throw new QSFError('io_error', 'the saved sequence cannot be read; its file may have changed', { cause });
  }
}

/** Returns the parts of a note. A native program's has the same form. */
function noteOf(bytes: Uint8Array): { rest: string; messages?: ChatMessage[] } {
  if (bytes.length === 0) return { rest: '' };
  try {
    const { rest = '', messages } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as {
      rest?: unknown;
      messages?: unknown;
    };
    if (typeof rest === 'string' && (messages === undefined || Array.isArray(messages)))
      return { rest, ...(messages && { messages: messages as ChatMessage[] }) };
  } catch {
    // It is no JSON object.
  }
  throw new QSFError('bad_input', "the saved sequence's note is not that of a conversation");
}
