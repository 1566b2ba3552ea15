// The seal of a cached model: a digest of the headers that its server agreed to. Who sends others, or none, needs the
// server's agreement again.

import { UNSEALED } from './journal.js';

const ROUNDS = 100_000;
const SALT_BYTES = 16;
/** The length of the salt in a seal. */
const SALT_DIGITS = 2 * SALT_BYTES;

const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Returns the seal of headers, with the salt of an `earlier` one so that both can be compared.
 * Salt and rounds make it slow to guess a password from a seal.
 */
export async function sealOf(headers: HeadersInit | undefined, earlier?: string): Promise<string> {
  const all = [...new Headers(headers)];
  if (all.length === 0) return UNSEALED;
  const hasSalt = earlier !== undefined && earlier !== UNSEALED;
  const salt = hasSalt ? earlier.slice(0, SALT_DIGITS) : hexOf(crypto.getRandomValues(new Uint8Array(SALT_BYTES)));
  const coded = (text: string) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey('raw', coded(JSON.stringify(all)), 'PBKDF2', false, ['deriveBits']);
  const how = { name: 'PBKDF2', hash: 'SHA-256', salt: coded(salt), iterations: ROUNDS };
  return salt + hexOf(new Uint8Array(await crypto.subtle.deriveBits(how, key, 256)));
}
