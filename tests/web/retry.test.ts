import { describe, expect, it } from 'vitest';

import { isTransient, retryDelay, sleep } from '../../web/src/sources/retry.js';

const policy = { retries: 5, delay: 400, longest: 20_000 };

describe('retryDelay', () => {
  it('doubles, half of it at random, up to the longest', () => {
    const waits = [1, 2, 3, 4].map((attempt) => retryDelay(policy, attempt, null, () => 0));
    expect(waits).toEqual([200, 400, 800, 1600]);
    expect(retryDelay(policy, 1, null, () => 1)).toBe(400);
    expect(retryDelay(policy, 20, null, () => 1)).toBe(20_000);
  });

  it('obeys Retry-After in seconds and as a date, up to the longest', () => {
    expect(retryDelay(policy, 1, '3', () => 0)).toBe(3000);
    expect(retryDelay(policy, 1, '86400', () => 0)).toBe(20_000);
    const soon = new Date(Date.now() + 10_000).toUTCString();
    expect(retryDelay(policy, 1, soon, () => 0)).toBeGreaterThan(8000);
    expect(retryDelay(policy, 1, 'when it suits', () => 0)).toBe(200);
  });
});

it('some statuses may pass by themselves', () => {
  expect([408, 429, 500, 502, 503, 504].every(isTransient)).toBe(true);
  expect([400, 401, 403, 404, 410, 416].some(isTransient)).toBe(false);
});

describe('sleep', () => {
  it("rejects with the signal's reason, also one that was there before", async () => {
    const controller = new AbortController();
    const sleeping = sleep(60_000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(sleeping).rejects.toThrow('enough');
    await expect(sleep(1, controller.signal)).rejects.toThrow('enough');
  });
});
