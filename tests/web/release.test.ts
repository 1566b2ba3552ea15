import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { describe, expect, it } from 'vitest';

import { HttpFile } from '../../web/src/sources/http.js';
import { release } from '../../web/src/sources/release.js';

const fetched = { type: 'basic' } as Response;
const made = new Response();

describe('a used chunk', () => {
  it('is gone at once', () => {
    const chunk = new Uint8Array(1000);
    release(chunk, fetched);
    expect(chunk.buffer.byteLength).toBe(0);
  });

  it('stays where others use its memory', () => {
    const chunk = new Uint8Array(new ArrayBuffer(1000), 100);
    release(chunk, fetched);
    expect(chunk).toHaveLength(900);
  });

  it('stays where a script made the response', () => {
    const chunk = new Uint8Array(1000);
    release(chunk, made);
    expect(chunk).toHaveLength(1000);
  });

  it('was copied before', async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
    const server = createServer((_, response) => response.end(bytes));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const file = new HttpFile(`http://localhost:${(server.address() as AddressInfo).port}/`);
    const chunks: Uint8Array[] = [];
    for await (const chunk of file.chunks(await file.whole())) chunks.push(chunk.slice());
    server.close();
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  });
});
