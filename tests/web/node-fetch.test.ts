// Redirects in Node, between two servers.
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { fetchFile } from '../../web/src/node/fetch.js';

/** The headers of each request, with the server's name. */
const seen: { server: string; path: string; headers: IncomingHttpHeaders }[] = [];
const servers: Server[] = [];
const origins: Record<string, string> = {};

async function serve(name: string, location: (path: string) => string | undefined): Promise<void> {
  const server = createServer((request, response) => {
    seen.push({ server: name, path: request.url!, headers: request.headers });
    const to = location(request.url!);
    if (to === undefined) response.end('bytes');
    else response.writeHead(302, { Location: to }).end();
  });
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  origins[name] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  await serve('files', () => undefined);
  await serve('hub', (path) => {
    const places: Record<string, string> = {
      '/own': '/here',
      '/other': `${origins['files']}/there`,
      '/loop': '/loop',
      '/data': 'data:,bytes',
    };
    return places[path];
  });
});
afterAll(() => servers.forEach((server) => server.close()));

const asked = { headers: { Authorization: 'Bearer t', 'X-Key': 'k', Range: 'bytes=0-1' } };

it('keeps the headers of the caller at the same origin', async () => {
  seen.length = 0;
  const response = await fetchFile(`${origins['hub']}/own`, asked);
  expect(response.url).toBe(`${origins['hub']}/here`);
  expect(seen.map(({ path }) => path)).toEqual(['/own', '/here']);
  expect(seen[1]!.headers).toMatchObject({ authorization: 'Bearer t', 'x-key': 'k', range: 'bytes=0-1' });
});

it('sends only the range to another origin', async () => {
  seen.length = 0;
  const response = await fetchFile(`${origins['hub']}/other`, asked);
  expect(await response.text()).toBe('bytes');
  expect(seen.map(({ server }) => server)).toEqual(['hub', 'files']);
  expect(seen[1]!.headers).toMatchObject({ range: 'bytes=0-1' });
  expect(seen[1]!.headers).not.toHaveProperty('x-key');
  expect(seen[1]!.headers).not.toHaveProperty('authorization');
});

it.each([
  ['/loop', 'more than 20 redirects'],
  ['/data', 'no http(s) address'],
])('does not follow %s', async (path, why) => {
  await expect(fetchFile(origins['hub']! + path)).rejects.toMatchObject({
    code: 'network_error',
    message: expect.stringContaining(why) as string,
  });
});

it('does not leave https', async () => {
  const answer = vi.fn(async () => new Response(null, { status: 301, headers: { Location: 'http://models.test/m' } }));
  vi.stubGlobal('fetch', answer);
  try {
    await expect(fetchFile('https://models.test/m')).rejects.toMatchObject({
      code: 'network_error',
      message: expect.stringContaining('from https to http') as string,
    });
    expect(answer).toHaveBeenCalledTimes(1);
  } finally {
    vi.unstubAllGlobals();
  }
});
