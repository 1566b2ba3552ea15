// The record of a cached file, as lines of text. The first line states which file it is; each further line adds or
// drops a range of verified bytes. A line counts once it ends in a newline, so that a torn end loses only itself.
import { hideSecrets } from '../secrets.js';
import { RangeSet } from './ranges.js';

/** The file, and its version, that the bytes belong to. */
export interface Identity {
  /** In the journal, the form that hideSecrets() returns. The folder's name identifies the exact address. */
  url: string;
  /** ETag or Last-Modified; null if the server sends neither. */
  validator: string | null;
  size: number;
  /** For a made file: the size of the file that it is made from, which is the one at the address. */
  of?: number;
  /** The type that the matrices of a made file were rounded to, if one was asked for. */
  quantType?: string;
}

export interface Journal {
  identity: Identity;
  verified: RangeSet;
  /** Whether everything that the model needs is verified. */
  complete: boolean;
  /** The seal of the headers that the server agreed to last; undefined in journals of a time without seals. */
  seal: string | undefined;
  /** Bytes of text that were understood; further lines are written from here. */
  length: number;
}

const VERSION = 1;
export const COMPLETE_LINE = 'complete\n';

export function headLine(identity: Identity, seal?: string): string {
  const { url, validator, size, of, quantType } = identity;
  return `${JSON.stringify({ qsf: VERSION, url: hideSecrets(url), validator, size, of, quantType, seal })}\n`;
}

export function rangeLine(kind: 'have' | 'drop', offset: number, size: number): string {
  return `${kind} ${offset} ${size}\n`;
}

/** The seal of no headers. */
export const UNSEALED = '-';
const IS_SEAL = /^(-|[0-9a-f]{96})$/;
export const sealLine = (seal: string): string => `seal ${seal}\n`;

/** Undefined if the text does not begin with a head line that this version can read. */
export function parseJournal(bytes: Uint8Array): Journal | undefined {
  const text = new TextDecoder('latin1').decode(bytes);
  const headEnd = text.indexOf('\n');
  const head = headEnd < 0 ? undefined : parseHead(bytes.subarray(0, headEnd));
  if (!head) return undefined;
  const journal: Journal = { ...head, verified: new RangeSet(), complete: false, length: headEnd + 1 };
  for (;;) {
    const end = text.indexOf('\n', journal.length);
    if (end < 0 || !applyLine(journal, text.slice(journal.length, end))) return journal;
    journal.length = end + 1;
  }
}

function parseHead(line: Uint8Array): Pick<Journal, 'identity' | 'seal'> | undefined {
  try {
    const head = JSON.parse(new TextDecoder().decode(line)) as Record<string, unknown>;
    const { url, validator, size, of, quantType, seal } = head;
    const known =
      head['qsf'] === VERSION &&
      typeof url === 'string' &&
      (validator === null || typeof validator === 'string') &&
      isSize(size) &&
      (of === undefined || isSize(of)) &&
      (quantType === undefined || typeof quantType === 'string') &&
      (seal === undefined || (typeof seal === 'string' && IS_SEAL.test(seal)));
    if (!known) return undefined;
    const made = { ...(of !== undefined && { of }), ...(quantType !== undefined && { quantType }) };
    return { identity: { url: hideSecrets(url), validator, size, ...made }, seal };
  } catch {
    return undefined;
  }
}

/** Returns the size of the file at the address. */
export const sizeAt = ({ size, of }: Identity): number => of ?? size;

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function applyLine(journal: Journal, line: string): boolean {
  if (`${line}\n` === COMPLETE_LINE) {
    journal.complete = true;
    return true;
  }
  if (line.startsWith('seal ')) {
    const seal = line.slice('seal '.length);
    if (IS_SEAL.test(seal)) journal.seal = seal;
    return IS_SEAL.test(seal);
  }
  const match = /^(have|drop) (\d{1,15}) (\d{1,15})$/.exec(line);
  if (!match) return false;
  const offset = Number(match[2]);
  const size = Number(match[3]);
  if (size > journal.identity.size || offset > journal.identity.size - size) return false;
  if (match[1] === 'have') {
    journal.verified.add(offset, size);
  } else {
    journal.verified.remove(offset, size);
    journal.complete = false;
  }
  return true;
}
