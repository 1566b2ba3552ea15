// What the package does in Node alone; that it gives the same text is tests/examples' to say.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, openAsBlob, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { FileSource } from '../../web/src/node/file-source.js';
import { absolute } from '../../web/src/node/platform.js';
import { NodeWorker } from '../../web/src/node/thread.js';
import { nextTo } from '../../web/src/worker/open-source.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'qsf-node-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('what is opened', () => {
  it('is an address, or the path of a file', () => {
    expect(absolute('http://localhost:8080/m.qsf#x')).toBe('http://localhost:8080/m.qsf');
    expect(absolute(new URL('https://models.test/m.qsf'))).toBe('https://models.test/m.qsf');
    expect(absolute('file:///models/m.qsf')).toBe('file:///models/m.qsf');
    expect(absolute('models/my model.qsf')).toBe(pathToFileURL(join(process.cwd(), 'models/my model.qsf')).href);
    expect(absolute('models/dir/')).toBe(pathToFileURL(join(process.cwd(), 'models/dir/')).href);
    expect(absolute('tests/web')).toBe(pathToFileURL(join(process.cwd(), 'tests/web/')).href);
    expect(absolute(pathToFileURL(folder))).toBe(`${pathToFileURL(folder).href}/`);
    expect(absolute('/')).toBe('file:///');
    expect(() => absolute('ftp://models.test/m.qsf')).toThrow(/neither an http\(s\) nor a file: address, nor a path/);
    expect(() => absolute('http://[')).toThrow('"http://[" is not an address');
  });
});

it('of a directory is next to its address, also in a directory of it', () => {
  const names = ['model a%20.safetensors', '1_Pooling/config.json'];
  const path = join(folder, 'models, #1/');
  expect(names.map((name) => fileURLToPath(nextTo(pathToFileURL(path).href, name)))).toEqual(
    names.map((name) => path + name),
  );
  const address = 'https://models.test/a%2Fb/part.gguf?x=1/2';
  expect(nextTo(address, names[1]!)).toBe('https://models.test/a%2Fb/1_Pooling/config.json?x=1/2');
});

describe('a file', () => {
  it('is read at any offset, into shared memory too', async () => {
    const path = join(folder, 'bytes');
    writeFileSync(
      path,
      Uint8Array.from({ length: 1000 }, (_, i) => i & 0xff),
    );
    const source = await FileSource.open(path);
    expect(source.size).toBe(1000);
    const into = new Uint8Array(new SharedArrayBuffer(16), 8, 4);
    await source.read({ offset: 300, into, crc: undefined });
    expect([...into]).toEqual([44, 45, 46, 47]);
    expect(source.stats()).toMatchObject({ blob: 4, network: 0, loaded: 1000 });
    await source.close();
  });

  it('that was cut off ends in truncated, a folder and what is not there in io_error', async () => {
    const path = join(folder, 'short');
    writeFileSync(path, new Uint8Array(100));
    const source = await FileSource.open(path);
    truncateSync(path, 50);
    await expect(source.read({ offset: 40, into: new Uint8Array(20), crc: undefined })).rejects.toMatchObject({
      code: 'truncated',
    });
    await source.close();
    await expect(FileSource.open(folder)).rejects.toMatchObject({ code: 'io_error' });
    await expect(FileSource.open(join(folder, 'none'))).rejects.toMatchObject({ code: 'io_error' });
  });

  it('that is a pipe ends in io_error, without waiting for a writer', async () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const opened = FileSource.open(path).catch((error: unknown) => error);
    const waited = new Promise((resolve) => setTimeout(resolve, 2000, 'waits'));
    expect(await Promise.race([opened, waited])).toMatchObject({ code: 'io_error' });
  });
});

describe('a thread', () => {
  it('takes a Blob of bytes, and refuses one of a file with advice', async () => {
    const path = join(folder, 'model.qsf');
    writeFileSync(path, 'bytes');
    const script = "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});";
    const thread = new NodeWorker(`data:text/javascript,${encodeURIComponent(script)}`);
    try {
      thread.postMessage({ source: new Blob(['bytes']) });
      const file = await openAsBlob(path);
      expect(() => thread.postMessage({ source: file })).toThrow(
        expect.objectContaining({
          code: 'unsupported_host',
          message: expect.stringContaining('give the path of a model') as string,
        }),
      );
      const port = { source: () => {} };
      expect(() => thread.postMessage(port)).toThrow(/could not be cloned/);
    } finally {
      thread.terminate();
    }
  });
});
