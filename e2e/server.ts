// A web server for the tests: the package under a strict policy, and models with faults on order.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

export interface ServedModel {
  bytes: Buffer;
  etag: string | null;
  ranges: boolean;
  /** 0: as fast as it goes. */
  bytesPerSecond: number;
}

export type Fault = { status: number } | { breakAfter: number };

export interface Asked {
  path: string;
  method: string;
  range: string | undefined;
  /** Bytes of the body that were handed to the connection. */
  sent: number;
  status: number;
}

/** What a server allows. */
interface Manners {
  /** Pages are isolated from other origins. */
  isolated: boolean;
  /** Pages may run WebAssembly. */
  wasm: boolean;
  /** Pages of other origins may read. */
  shared: boolean;
}

export class TestServer {
  readonly models = new Map<string, ServedModel>();
  /** By path: the address that it redirects to, or JSON. */
  readonly answers = new Map<string, string | object>();
  /** The origin that the package asks in place of the Hub's. */
  hub: string | undefined;
  /** Called with what a page tells by POST. */
  onTold: (told: unknown) => void = () => undefined;
  asked: Asked[] = [];
  /** The names of the package's files that were sent. */
  loaded: string[] = [];
  /** Decides on a model's request by its number since `asked` was last emptied. */
  fault: (n: number, asked: Asked) => Fault | undefined = () => undefined;
  #server: Server | undefined;
  #port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #connect: string[];
  readonly #manners: Manners;

  /** `connect`: other origins that pages may read from. */
  static async start(connect: string[] = [], manners: Partial<Manners> = {}): Promise<TestServer> {
    const server = new TestServer(connect, { isolated: false, wasm: true, shared: true, ...manners });
    await server.resume();
    return server;
  }

  private constructor(connect: string[], manners: Manners) {
    this.#connect = connect;
    this.#manners = manners;
  }

  get origin(): string {
    return `http://localhost:${String(this.#port)}`;
  }

  serve(name: string, bytes: Buffer, options: Partial<ServedModel> = {}): string {
    const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}"`;
    this.models.set(`/models/${name}`, { bytes, etag, ranges: true, bytesPerSecond: 0, ...options });
    return `${this.origin}/models/${name}`;
  }

  model(name: string): ServedModel {
    return this.models.get(`/models/${name}`)!;
  }

  /** Forgets what was asked and every fault. */
  calm(): void {
    this.asked = [];
    this.loaded = [];
    this.fault = () => undefined;
  }

  /** Bytes of models sent since calm(). */
  get sent(): number {
    return this.asked.reduce((sum, { sent }) => sum + sent, 0);
  }

  /** Closes the port and every connection; resume() opens the same port again. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  }

  async resume(): Promise<void> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(this.#port, 'localhost', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.origin);
    if (this.#manners.shared) {
      response.setHeader('Access-Control-Allow-Origin', '*');
      response.setHeader('Access-Control-Allow-Headers', '*');
      response.setHeader('Access-Control-Expose-Headers', 'Content-Range, ETag');
    }
    if (request.method === 'OPTIONS') return void response.writeHead(204).end();
    if (request.method === 'POST' && pathname === '/told') {
      let text = '';
      for await (const part of request) text += String(part);
      this.onTold(JSON.parse(text));
      return void response.writeHead(204).end();
    }
    const answer = this.answers.get(pathname);
    if (typeof answer === 'string') return void response.writeHead(302, { Location: answer }).end();
    if (answer) return void response.end(JSON.stringify(answer));
    const model = this.models.get(pathname);
    if (model) return this.#answerModel(model, pathname, request, response);
    this.#answerFile(pathname, response);
  }

  async #answerModel(
    model: ServedModel,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { range } = request.headers;
    const asked: Asked = { path, method: request.method ?? '', range, sent: 0, status: 200 };
    const fault = this.fault(this.asked.length, asked);
    this.asked.push(asked);
    if (fault && 'status' in fault) {
      asked.status = fault.status;
      return void response.writeHead(fault.status).end();
    }
    const { bytes, etag, ranges, bytesPerSecond } = model;
    if (etag !== null) response.setHeader('ETag', etag);
    const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? '');
    const ifRange = request.headers['if-range'];
    let body = bytes;
    if (match && ranges && (ifRange === undefined || ifRange === etag)) {
      const begin = Number(match[1]);
      const end = Math.min(Number(match[2]) + 1, bytes.length);
      body = bytes.subarray(begin, end);
      asked.status = 206;
      response.setHeader('Content-Range', `bytes ${String(begin)}-${String(end - 1)}/${String(bytes.length)}`);
    }
    response.writeHead(asked.status, { 'Content-Length': body.length, 'Content-Type': 'application/octet-stream' });
    if (request.method === 'HEAD') return void response.end();
    const end = fault ? Math.min(fault.breakAfter, body.length) : body.length;
    const step = bytesPerSecond > 0 ? Math.max(1, Math.round(bytesPerSecond / 50)) : 256 * 1024;
    while (asked.sent < end && !response.destroyed) {
      const chunk = body.subarray(asked.sent, Math.min(asked.sent + step, end));
      asked.sent += chunk.length;
      if (!response.write(chunk)) await drained(response);
      if (bytesPerSecond > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (fault) response.destroy();
    else response.end();
  }

  /** The test page, and the package in place of its sources, so that the page's one import is right in both worlds. */
  #answerFile(path: string, response: ServerResponse): void {
    const policy = [
      "default-src 'none'",
      `script-src 'self'${this.#manners.wasm ? " 'wasm-unsafe-eval'" : ''}`,
      "worker-src 'self'",
      `connect-src 'self' ${this.#connect.join(' ')}`,
      "base-uri 'none'",
      "form-action 'none'",
    ].join('; ');
    response.setHeader('Content-Security-Policy', policy);
    response.setHeader('Cache-Control', 'no-store');
    if (this.#manners.isolated) {
      response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
      response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
    }
    const found = this.#withHub(fileFor(path), path);
    if (!found) return void response.writeHead(404).end();
    this.loaded.push(path.split('/').at(-1)!);
    response.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'text/html; charset=utf-8' }).end(found);
  }

  #withHub(file: Buffer | string | undefined, path: string): Buffer | string | undefined {
    if (this.hub === undefined || !path.endsWith('.js')) return file;
    return file?.toString().replaceAll('https://huggingface.co', this.hub);
  }
}

/** Resolves when a response takes more, or is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

function fileFor(path: string): Buffer | string | undefined {
  if (path === '/') return '<!doctype html><title>QSF</title><script type="module" src="/e2e/page.js"></script>';
  if (path === '/alone') return '<!doctype html><title>QSF</title><script type="module" src="/e2e/alone.js"></script>';
  const script = /^\/e2e\/(page|alone)\.js$/.exec(path)?.[1];
  if (script) {
    const source = readFileSync(join(root, 'e2e', `${script}.ts`), 'utf8');
    const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
    return ts.transpileModule(source, { compilerOptions }).outputText;
  }
  const program = /^\/programs\/([\w-]+\.(?:js|wasm))$/.exec(path)?.[1];
  if (program !== undefined) return readFileSync(join(root, 'build-wasm', 'bin', program));
  const name = /^\/web\/src\/([\w.-]+(?:\/[\w.-]+)*)$/.exec(path)?.[1];
  if (name === undefined || name.includes('..')) return undefined;
  const file = join(root, 'dist', name);
  return existsSync(file) ? readFileSync(file) : undefined;
}
