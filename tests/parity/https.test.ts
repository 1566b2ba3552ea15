// A model from an https server: the tokens of the local file, in the memory that docs/promises.md states. The server is
// in this process. Its certificate is known only to the programs that are run here, in a mount namespace of their own.
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
const ABOVE = 16 * MB;
/** Threads above these take memory of their own. */
const FREE_THREADS = 64;
const OF_A_THREAD = 10_000;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

const own = join(folder, 'https');
const bundle = join(own, 'bundle.crt');
/** Runs a program that trusts the server. */
const trusting = ['--user', '--map-root-user', '--mount', 'sh', '-c'];
const mount = `mount --bind '${bundle}' ${CERTIFICATES} && exec "$@"`;
const isPossible = spawnSync('unshare', [...trusting, `mount --bind ${CERTIFICATES} ${CERTIFICATES}`]).status === 0;

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
  copyFileSync(CERTIFICATES, bundle);
  appendFileSync(bundle, readFileSync(cert));
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

async function run(model: string, budget: number, threads: number): Promise<Receipt> {
  const receipt = join(own, 'receipt.json');
  const options = ['-p', 'Once upon a time', '-n', '8', '--temperature', '0', '--receipt', receipt];
  const command = [program('qsf-run'), model, ...options, '--ram-budget', `${budget}`, '-t', `${threads}`];
  await promisify(execFile)('unshare', [...trusting, mount, 'sh', ...command]);
  return JSON.parse(readFileSync(receipt, 'utf8')) as Receipt;
}

it.skipIf(!isPossible).each([
  [1.5, 1],
  [2, 2],
  [4, FREE_THREADS],
  [4, 1024],
])('reads a model within the budget of %s MiB plus 16 MB, with %s threads', async (budget, threads) => {
  const fromServer = await run(url, budget, threads);
  const most = ABOVE + Math.max(0, threads - FREE_THREADS) * OF_A_THREAD;
  const above = fromServer.peak_resident_bytes - budget * MiB;
  console.log(`budget ${budget} MiB, ${threads} threads: ${(above / MB).toFixed(2)} MB above`);
  expect(fromServer.peak_resident_bytes).toBeLessThanOrEqual(budget * MiB + most);
  expect(fromServer.generated_tokens).toEqual((await run(file, budget, threads)).generated_tokens);
});
