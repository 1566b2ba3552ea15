// A model that was cached with headers, which may have a token, and who may open it while its server does not answer.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { HttpSource } from '../../web/src/sources/http-source.js';
import { headLine, parseJournal, rangeLine, sealLine } from '../../web/src/sources/journal.js';
import { openCache } from '../../web/src/sources/model-cache.js';
import { SIZE, TABLES, URL_, piecesOf, read } from './fake-cache.js';
import { journalFile, installFakeOpfs } from './fake-opfs.js';
import type { FakeFolder } from './fake-opfs.js';
import { FakeServer, noise, same } from './fake-server.js';

let top: FakeFolder;
let server: FakeServer;
beforeEach(() => {
  top = installFakeOpfs(Date.now);
  server = new FakeServer(noise(SIZE), { chunk: SIZE });
});
afterEach(() => vi.unstubAllGlobals());

const [mine, other] = ['mine', 'another'].map((token) => ({ Authorization: `Bearer ${token}` }));

async function open(headers?: Record<string, string>): Promise<HttpSource> {
  const kept = await openCache(URL_, headers);
  try {
    return await HttpSource.open(URL_, kept, { fetch: server.fetch, headers, retries: 0 } as never);
  } catch (error) {
    await kept?.close();
    throw error;
  }
}

/** Opens the model and closes it. */
const opens = async (headers?: Record<string, string>): Promise<void> => (await open(headers)).close();

async function keep(headers?: Record<string, string>): Promise<void> {
  const source = await open(headers);
  await read(source, 0, TABLES);
  source.accepted();
  await source.keep(piecesOf(server.bytes));
  await source.close();
}

const away = () => (server.fault = () => ({ kind: 'refuse' }));
const refused = { code: 'network_error', message: expect.stringContaining('has to agree to these first') as string };
const journal = () => new TextDecoder().decode(journalFile(top).bytes);

it('opens without the server for the same headers only', async () => {
  await keep(mine);
  away();
  const source = await open({ authorization: mine!.Authorization });
  const { offset, size, crc } = piecesOf(server.bytes)[3]!;
  expect(same(await read(source, offset, size, crc), server.bytes.subarray(offset, offset + size))).toBe(true);
  await source.close();
  await expect(opens()).rejects.toMatchObject(refused);
  await expect(opens(other)).rejects.toMatchObject(refused);
  vi.stubGlobal('navigator', {
    ...globalThis.navigator,
    locks: navigator.locks,
    storage: navigator.storage,
    onLine: false,
  });
  await opens(mine);
  await expect(opens()).rejects.toMatchObject(refused);
});

it.each([401, 403])('is refused by a server that answers %d', async (status) => {
  await keep(mine);
  server.fault = () => ({ kind: 'status', status });
  for (const headers of [undefined, other, mine])
    await expect(opens(headers)).rejects.toMatchObject({ code: 'http_status', status });
});

it('is open to the headers that the server agreed to last', async () => {
  await keep(mine);
  await opens(other);
  away();
  await opens(other);
  await expect(opens(mine)).rejects.toMatchObject(refused);
});

it('is open to all after the server agreed to no headers', async () => {
  await keep(mine);
  await opens();
  away();
  for (const headers of [undefined, other, mine]) await opens(headers);
});

it('is open to all if no headers were needed, or nothing is known of them', async () => {
  await keep();
  await opens(mine);
  away();
  for (const headers of [undefined, other]) await opens(headers);
  // A record of a time without seals.
  const old = new TextEncoder().encode(journal().replace(',"seal":"-"', ''));
  const file = await journalFile(top).createSyncAccessHandle({ mode: 'readwrite-unsafe' });
  file.truncate(0);
  file.write(old, { at: 0 });
  file.close();
  for (const headers of [undefined, other]) await opens(headers);
});

it('tells no header, nor by two seals that they are of one', async () => {
  await keep(mine);
  const first = parseJournal(journalFile(top).bytes)!.seal;
  expect(journal()).not.toMatch(/mine|authorization/i);
  top = installFakeOpfs(Date.now);
  await keep(mine);
  expect(parseJournal(journalFile(top).bytes)!.seal).not.toBe(first);
});

it('has a seal in its record, of which a damaged one ends the record', () => {
  const identity = { url: URL_, validator: null, size: 10 };
  const [a, b] = ['a', 'b'].map((digit) => digit.repeat(96));
  const sealed = (...lines: string[]) =>
    parseJournal(new TextEncoder().encode(headLine(identity, a) + lines.join('')))!;
  expect(sealed(rangeLine('have', 0, 4)).seal).toBe(a);
  expect(sealed(sealLine(b!), rangeLine('have', 0, 4))).toMatchObject({ seal: b, verified: { total: 4 } });
  expect(sealed(sealLine('c'), rangeLine('have', 0, 4))).toMatchObject({ seal: a, verified: { total: 0 } });
  expect(parseJournal(new TextEncoder().encode(headLine(identity, 'c')))).toBeUndefined();
});
