// The option `draft` of load(), on its way to the worker.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { QSF } from '../../web/src/page/qsf.js';
import { canShare } from '../../web/src/page/shared.js';
import { loadRequest } from '../../web/src/page/requests.js';
import type { Progress } from '../../web/src/progress-types.js';
import type { LoadOptions } from '../../web/src/types.js';
import { FakeLocks } from './fake-locks.js';
import { installFakeWorker, removeFakeWorker } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const URL_ = 'https://example.org/model.qsf';

let backend: Backend;
beforeEach(() => {
  backend = installFakeWorker();
});
afterEach(() => {
  removeFakeWorker();
  vi.unstubAllGlobals();
});

it('is any source that the model can be', async () => {
  const bytes = new Uint8Array([1, 2, 3]);
  await QSF.load(URL_, { draft: 'small.gguf' });
  await QSF.load(URL_, { draft: 'hf:owner/name', guesses: 3 });
  await QSF.load(bytes, { draft: bytes });
  await QSF.load(URL_, { draft: new File(['x'], 'draft.gguf') });
  const [address, repository, moved, file] = backend.loads.map(({ draft }) => draft);
  expect(address).toBe('https://page.test/demo/small.gguf');
  expect(repository).toBe('hf:owner/name@main');
  expect(moved).toEqual(bytes);
  expect(file).toMatchObject([{ name: 'draft.gguf', file: expect.any(Blob) as Blob }]);
  expect(bytes).toHaveLength(3); // the worker has copies of its own
  expect(backend.loads.map(({ open }) => open.guesses)).toEqual([0, 3, 0, 0]);
  await QSF.load(URL_);
  expect(backend.loads.at(-1)).not.toHaveProperty('draft');
});

it('has a type of its own', async () => {
  const source = new File(['x'], 'draft.gguf');
  await QSF.load(URL_, { quantType: 'q8_0', draft: { source, quantType: 'Q4_0' as 'q4_0' } });
  await QSF.load(URL_, { quantType: 'q8_0', draft: { source: 'small.gguf' } });
  expect(backend.loads).toMatchObject([
    { quantType: 'q8_0', draft: [{ name: 'draft.gguf' }], draftType: 'q4_0' },
    { quantType: 'q8_0', draft: 'https://page.test/demo/small.gguf', draftType: undefined },
  ]);
});

it('has progress of its own', async () => {
  const seen: Progress[] = [];
  const step = { phase: 'open', loaded: 0, total: 0, network: 0, cache: 0 } as const;
  backend.answers.load = async (report) => {
    report({ ...step, of: 'draft' });
    report(step);
    return { ok: true, value: false };
  };
  await QSF.load(URL_, { draft: URL_, onProgress: (progress) => seen.push(progress) });
  expect(seen).toEqual([{ ...step, of: 'draft' }, step]);
});

it.each<[LoadOptions, string]>([
  [{ draft: URL_, guesses: 0 }, 'guesses is 0, so that a draft has nothing to guess; it must be 1 to 15'],
  [{ draft: URL_, guesses: 16 }, 'guesses is 16; it must be a whole number from 0 to 15'],
  [{ draft: 5 as never }, 'the draft model is 5; it must be an address,'],
  [{ draft: [] as never }, 'the draft model is a list; it must be an address,'],
  [{ draft: null as never }, 'the draft model is null; it must be an address,'],
  [{ draft: { quantType: 'q4_0' } as never }, 'the draft model is an object; it must be an address,'],
  [{ draft: { source: 5 as never } }, 'the draft model is 5; it must be an address,'],
  [{ draft: { source: URL_, quantTypes: 'q4_0' } as never }, 'did you mean quantType?'],
  [
    { draft: { source: URL_, quantType: 'iq1_s' as never } },
    'quantType of the draft is "iq1_s"; it must be one of f32',
  ],
])('is refused if it is no model, or has nothing to guess: %o', async (options, sentence) => {
  const refused = expect.stringContaining(sentence) as string;
  await expect(QSF.load(URL_, options)).rejects.toMatchObject({ code: 'bad_argument', message: refused });
  expect(backend.loads).toEqual([]);
});

it('is shared by tabs if it has an address', async () => {
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
  vi.stubGlobal('origin', 'https://page.test');
  const shares = async (options: LoadOptions) => canShare(await loadRequest(URL_, options));
  expect(await shares({})).toBe(true);
  expect(await shares({ draft: URL_ })).toBe(true);
  expect(await shares({ draft: new Blob(['x']) })).toBe(false);
});
