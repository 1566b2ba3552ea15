// The decision to try again, and the wait before.

export interface RetryPolicy {
  /** Further tries after a failure that brought no bytes. */
  retries: number;
  /** Milliseconds before the first retry. */
  delay: number;
  /** The longest wait in milliseconds. */
  longest: number;
}

export const DEFAULT_RETRY: RetryPolicy = { retries: 5, delay: 400, longest: 20_000 };

/** Whether an HTTP status may pass by itself. */
export function isTransient(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

/**
 * Returns the milliseconds to wait before try `attempt` (1 for the first retry). They double each time, and half of
 * them is random, so that many clients do not return together. A server's Retry-After is obeyed up to the longest wait.
 */
export function retryDelay(
  policy: RetryPolicy,
  attempt: number,
  retryAfter: string | null,
  random = Math.random,
): number {
  const full = Math.min(policy.longest, policy.delay * 2 ** (attempt - 1));
  const jittered = full / 2 + (full / 2) * random();
  return Math.max(jittered, Math.min(policy.longest, retryAfterMs(retryAfter)));
}

function retryAfterMs(header: string | null): number {
  if (header === null) return 0;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - Date.now());
}

/** Resolves after `ms` milliseconds, or rejects with the signal's reason. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
