// What of an address is shown and stored.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { cache, makeRoom } from '../../web/src/page/cache.js';
import { QSFError, errorInfo } from '../../web/src/errors.js';
import { QSF } from '../../web/src/page/qsf.js';
import { loadRequest } from '../../web/src/page/requests.js';
import { hideSecrets } from '../../web/src/secrets.js';
import { HttpFile } from '../../web/src/sources/http.js';
import { headLine, parseJournal } from '../../web/src/sources/journal.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import { fetchModule } from '../../web/src/worker/worker-platform.js';
import { FakeSource, fakeEngine } from './fake-engine.js';
import { FakeWorker, installFakeWorker, removeFakeWorker } from './fake-worker.js';
import { installFakeOpfs } from './fake-opfs.js';
import { modelOf } from './model-of.js';

const SIGNED = 'https://models.test/a.qsf?X-Amz-Signature=s3cret&X-Amz-Date=today';
const SHOWN = 'https://models.test/a.qsf?X-Amz-Signature=***&X-Amz-Date=***';

describe('hideSecrets()', () => {
  it.each([
    ['https://models.test/a.qsf', 'https://models.test/a.qsf'],
    [SIGNED, SHOWN],
    ['https://user:pass@models.test:8080/a.qsf', 'https://***@models.test:8080/a.qsf'],
    ['https://user@models.test', 'https://***@models.test'],
    ['https://us@er:p@ss@models.test/a@b.qsf', 'https://***@models.test/a@b.qsf'],
    ['https://models.test/?t0ken', 'https://models.test/?***'],
    ['https://models.test/a?b=c=d&&e=', 'https://models.test/a?b=***&&e=***'],
    ['https://models.test/a?b=c?d=e', 'https://models.test/a?b=***'],
    ['https://models.test/a#token=x', 'https://models.test/a#***'],
    ["https://models.test/it's?key='x`y", "https://models.test/it's?key=***"],
    ['ftp://u:p@models.test/a', 'ftp://***@models.test/a'],
    ['hf:user:pass@host/owner/name', 'hf:***@host/owner/name'],
    ['hf://user:pass@host/owner/name', 'hf://***@host/owner/name'],
    ['hf:https://user:pass@host/a', 'hf:https://***@host/a'],
    ['hf:owner/name/a@b.gguf@main', 'hf:owner/name/a@b.gguf@main'],
    ['HTTPS:user:pass@host/a', 'HTTPS:***@host/a'],
    ['http:/user:pass@host/a', 'http:/***@host/a'],
    ['https:\\\\user:pass@host/a', 'https:\\\\***@host/a'],
    ['blob:https://page.test/5c-4', 'blob:https://page.test/5c-4'],
    ['file:///models/a.qsf', 'file:///models/a.qsf'],
  ])('%s', (address, shown) => {
    expect(hideSecrets(address)).toBe(shown);
    expect(hideSecrets(shown)).toBe(shown);
    expect(hideSecrets(`Of ${address}, "${address}" and (${address}): ${address}.`)).toBe(
      `Of ${shown}, "${shown}" and (${shown}): ${shown}.`,
    );
  });

  it.each(['http://a/' + '.'.repeat(1 << 21) + 'x', 'a-'.repeat(1 << 20)])('reads a long text once', (text) => {
    expect(hideSecrets(text)).toBe(text); // a second look at each character would take hours
  });

  it('leaves other texts as they are', () => {
    const text = 'The 5 bytes at 7: a@b.c, x?y=z & "Authorization: …" (see //docs).';
    expect(hideSecrets(text)).toBe(text);
  });
});

describe('an address with a signature', () => {
  beforeEach(() => installFakeOpfs(Date.now));
  afterEach(() => vi.unstubAllGlobals());

  it('is in no error, whoever writes its sentence', async () => {
    const error = new QSFError('network_error', `${SIGNED} could not be read.`, { url: SIGNED });
    expect(error).toMatchObject({ message: `${SHOWN} could not be read.`, url: SHOWN });
    expect(errorInfo(new TypeError(`Invalid URL: ${SIGNED}`)).sentence).toBe(`TypeError: Invalid URL: ${SHOWN}`);
    const failing = async () => {
      throw new TypeError(`Request cannot be constructed from ${SIGNED}`);
    };
    const file = new HttpFile(SIGNED, { fetch: failing, retries: 0 });
    await expect(file.open()).rejects.toMatchObject({
      message: `${SHOWN} could not be read: Request cannot be constructed from ${SHOWN}`,
      url: SHOWN,
    });
    vi.stubGlobal('fetch', failing);
    await expect(fetchModule(SIGNED)).rejects.not.toThrow(/s3cret|today/);
  });

  it('is in no warning', async () => {
    const source = new FakeSource();
    source.cacheState = 'off';
    const warnings: string[] = [];
    const tell = { progress: () => undefined, warning: (warning: string) => warnings.push(warning) };
    await modelOf(await loadRequest(SIGNED, {}), fakeEngine().engine, source, tell).load();
    expect(warnings).toEqual([expect.stringContaining(`The browser refused to keep ${SHOWN}:`)]);
  });

  it('is not what the cache stores and lists, and is known by what it lists', async () => {
    const line = headLine({ url: SIGNED, validator: null, size: 100 });
    expect(line).not.toMatch(/s3cret|today/);
    const old = JSON.stringify({ qsf: 1, url: SIGNED, validator: null, size: 100 });
    expect(parseJournal(new TextEncoder().encode(`${old}\n`))!.identity.url).toBe(SHOWN);

    const kept = (await openCache(SIGNED))!;
    kept.reset({ url: SIGNED, validator: null, size: 100 });
    kept.write(0, new Uint8Array(100));
    kept.mark(0, 100);
    kept.markComplete();
    expect(await cache.list()).toMatchObject([{ url: SHOWN, complete: true }]);
    await expect(cache.remove(SIGNED)).rejects.toMatchObject({ message: expect.stringContaining(SHOWN) as string });
    await kept.close();
    await makeRoom(0, SIGNED);
    for (const address of [SIGNED, SHOWN]) expect(await cache.state(address)).toMatchObject({ url: SHOWN, bytes: 100 });
    const other = SIGNED.replace('s3cret', 'another');
    expect(await cache.state(other)).toEqual({ url: SHOWN, bytes: 0, total: 0, complete: false });
    await cache.remove(other);
    expect(await cache.list()).toHaveLength(1);
    await cache.remove(SHOWN);
    expect(await cache.list()).toEqual([]);
  });

  it('can be removed by age and size', async () => {
    const kept = (await openCache(SIGNED))!;
    kept.reset({ url: SIGNED, validator: null, size: 100 });
    kept.write(0, new Uint8Array(100));
    kept.mark(0, 100);
    await kept.close();
    expect(await cache.prune({ maxBytes: 0 })).toEqual([SHOWN]);
    expect(await cache.list()).toEqual([]);
  });
});

it('an address with a user or a password is refused, and does not show it', async () => {
  installFakeWorker();
  const loading = QSF.load('https://user:pass@models.test/a.qsf');
  await expect(loading).rejects.toMatchObject({
    code: 'bad_argument',
    message: expect.stringMatching(/^https:\/\/\*\*\*@models\.test\/a\.qsf has .* headers: \{ Authorization/) as string,
  });
  expect(FakeWorker.made).toEqual([]);
  removeFakeWorker();
});
