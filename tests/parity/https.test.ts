// A model from an https server: the tokens of the local file, in the memory that docs/promises.md states. The server is
// in this process. Its certificate is known only to the programs that are run here, in a mount namespace of their own: by
// the file of all certificates, or by the folder that has one in each file.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { convert, folder, program } from './module.js';

const MiB = 1024 * 1024;
const MB = 1_000_000;
const ABOVE = 12 * MB;
/** Threads above these take memory of their own. */
const FREE_THREADS = 64;
const OF_A_THREAD = 10_000;
const CERTIFICATES = '/etc/ssl/certs';
const BUNDLE = 'ca-certificates.crt';

const own = join(folder, 'https');
/** Folders with the server's certificate in the file of all or in a file of its own, and without it. */
const trusts = { file: join(own, 'file'), folder: join(own, 'folder'), nothing: join(own, 'nothing') };
/** Runs a program with other certificates. */
const trusting = ['--user', '--map-root-user', '--mount', 'sh', '-c'];
const mount = (from: string) => `mount --bind '${from}' ${CERTIFICATES} && exec "$@"`;
const isPossible = spawnSync('unshare', [...trusting, mount(CERTIFICATES), 'sh', 'true']).status === 0;

interface Receipt {
  generated_tokens: number[];
  peak_resident_bytes: number;
}

let server: Server;
let file: string;
let url: string;

beforeAll(async () => {
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own, { recursive: true });
  file = convert('models/stories', 'stories-8bit.qsf');
  const [key, cert] = [join(own, 'key.pem'), join(own, 'cert.pem')];
  const made = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', ...made, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  for (const trust of Object.values(trusts)) {
    mkdirSync(trust);
    copyFileSync(join(CERTIFICATES, BUNDLE), join(trust, BUNDLE));
  }
  appendFileSync(join(trusts.file, BUNDLE), readFileSync(cert));
  const hash = execFileSync('openssl', ['x509', '-hash', '-noout', '-in', cert], { encoding: 'utf8' }).trim();
  copyFileSync(cert, join(trusts.folder, `${hash}.0`));
  const bytes = readFileSync(file);
  server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    const [first, last] = /bytes=(\d+)-(\d+)/
      .exec(request.headers.range ?? '')
      ?.slice(1)
      .map(Number) ?? [0, Infinity];
    const part = bytes.subarray(first, last! + 1);
    const range = `bytes ${first}-${first! + part.length - 1}/${bytes.length}`;
    response.writeHead(206, { 'Content-Range': range, 'Content-Length': part.length, ETag: '"1"' });
    response.end(part);
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  url = `https://localhost:${(server.address() as AddressInfo).port}/stories.qsf`;
});

afterAll(() => server.close());

async function run(model: string, trust: keyof typeof trusts, budget: number, threads: number): Promise<Receipt> {
  const receipt = join(own, 'receipt.json');
  const options = ['-p', 'Once upon a time', '-n', '8', '--temperature', '0', '--receipt', receipt];
  const command = [program('qsf-run'), model, ...options, '--ram-budget', `${budget}`, '-t', `${threads}`];
  await promisify(execFile)('unshare', [...trusting, mount(trusts[trust]), 'sh', ...command]);
  return JSON.parse(readFileSync(receipt, 'utf8')) as Receipt;
}

it.skipIf(!isPossible).each([
  ['file', 1.5, 1],
  ['folder', 1.5, 1],
  ['file', 2, 2],
  ['folder', 4, FREE_THREADS],
  ['file', 4, FREE_THREADS],
  ['file', 4, 1024],
] as const)(
  'is trusted by a %s, within the budget of %s MiB plus 12 MB, with %s threads',
  async (trust, budget, threads) => {
    const fromServer = await run(url, trust, budget, threads);
    const most = ABOVE + Math.max(0, threads - FREE_THREADS) * OF_A_THREAD;
    const above = fromServer.peak_resident_bytes - budget * MiB;
    console.log(`by a ${trust}, budget ${budget} MiB, ${threads} threads: ${(above / MB).toFixed(2)} MB above`);
    expect(fromServer.peak_resident_bytes).toBeLessThanOrEqual(budget * MiB + most);
    expect(fromServer.generated_tokens).toEqual((await run(file, trust, budget, threads)).generated_tokens);
  },
);

it.skipIf(!isPossible)('is refused at once if nothing trusts its certificate', async () => {
  await expect(run(url, 'nothing', 4, 1)).rejects.toMatchObject({
    stderr: expect.stringMatching(/network_error.*certificate/),
  });
});
