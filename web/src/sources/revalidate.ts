// The question to a server whether a complete cached model is still its file, and whether the caller may read it.
import { QSFError } from '../errors.js';
import type { HttpFile } from './http.js';
import { sizeAt } from './journal.js';
import type { ModelCache } from './model-cache.js';
import { sleep } from './retry.js';

/** Milliseconds that a complete cache waits for the server's answer whether the file is unchanged. */
const REVALIDATION = 3000;

/**
 * Whether a complete cache still equals the server's file. Without an answer of the server it does, for the headers that
 * the server agreed to before.
 */
export async function isStillSame(http: HttpFile, cache: ModelCache): Promise<boolean> {
  const kept = cache.identity!;
  if (globalThis.navigator?.onLine === false) return cache.isAgreed;
  const late = new AbortController();
  try {
    const giveUp = sleep(REVALIDATION, late.signal).then(() => undefined);
    giveUp.catch(() => {});
    const remote = await Promise.race([http.check(), giveUp]);
    if (!remote) return cache.isAgreed;
    const isSame = remote.validator === kept.validator && (remote.size ?? sizeAt(kept)) === sizeAt(kept);
    if (isSame) cache.agree();
    return isSame;
  } catch (error) {
    // An answer that refuses for good: the real request reports the reason.
    return error instanceof QSFError && error.code === 'network_error' && cache.isAgreed;
  } finally {
    late.abort();
  }
}

/** Returns the error of a server that did not answer whether the caller may read a cached model. */
export function notAgreed(error: unknown, url: string): unknown {
  if (!(error instanceof QSFError) || error.code !== 'network_error') return error;
  const why = 'was fetched with other network.headers, so that its server has to agree to these first';
  return new QSFError('network_error', `the cached copy of ${url} ${why}: ${error.message}`, { url, cause: error });
}
