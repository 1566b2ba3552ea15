import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import * as detect from '../../web/src/worker/detect.js';
import { chooseVariant } from '../../web/src/worker/variant.js';
import { installFakeOpfs } from './fake-opfs.js';
import type { FakeFile, FakeFolder } from './fake-opfs.js';

vi.mock('../../web/src/worker/detect.js', { spy: true });

const DAY = 24 * 60 * 60 * 1000;
let now: number;
let top: FakeFolder;

beforeEach(() => {
  now = 1_000_000;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  vi.spyOn(WebAssembly, 'validate').mockReturnValue(true);
  vi.mocked(detect.detectVariant).mockReset().mockReturnValueOnce('relaxedpairs').mockReturnValue('relaxed');
  top = installFakeOpfs(() => now);
  Object.assign(navigator, { userAgent: 'Browser 1', hardwareConcurrency: 2 });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const timings = () => vi.mocked(detect.detectVariant).mock.calls.length;
const file = () => (top.inside.get('qsf-choices') as FakeFolder).inside.get('variant') as FakeFile;

describe('the variant of an origin', () => {
  it('is timed once', async () => {
    for (let i = 0; i < 3; i++) expect(await chooseVariant()).toBe('relaxedpairs');
    expect(timings()).toBe(1);
    expect(file().open).toBe(0);
  });

  it.each([
    ['another browser', () => Object.assign(navigator, { userAgent: 'Browser 2' })],
    ['another machine', () => Object.assign(navigator, { hardwareConcurrency: 8 })],
    ['a month', () => (now += 31 * DAY)],
  ])('is timed again after %s', async (_, change) => {
    await chooseVariant();
    change();
    expect(await chooseVariant()).toBe('relaxed');
    expect(await chooseVariant()).toBe('relaxed');
    expect(timings()).toBe(2);
  });

  it('is the one that runs, where there is nothing to time', async () => {
    vi.mocked(WebAssembly.validate).mockReturnValue(false);
    for (let i = 0; i < 2; i++) await chooseVariant();
    expect(timings()).toBe(2);
    expect(top.inside.size).toBe(0);
  });

  it('is timed each time if the browser keeps no files', async () => {
    Object.assign(navigator.storage, { getDirectory: () => Promise.reject(new Error('not here')) });
    for (let i = 0; i < 2; i++) await chooseVariant();
    expect(timings()).toBe(2);
  });
});
