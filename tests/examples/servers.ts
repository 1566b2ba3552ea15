// What stands between the examples and the browser: folders, models and other servers, behind addresses of this machine.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import type { Duplex } from 'node:stream';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.qsf': 'application/octet-stream',
};

/** With these a page is isolated, so that the package computes with threads. */
const ISOLATED = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
/** What a server of files for other origins says. */
const SHARED = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Expose-Headers': 'Content-Range, ETag',
};

const running = new Set<Server>();

async function listen(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): Promise<string> {
  const server = createServer(answer);
  if (upgrade) server.on('upgrade', upgrade);
  running.add(server);
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return `http://localhost:${String((server.address() as AddressInfo).port)}`;
}

export function stopServers(): void {
  for (const server of running) {
    server.closeAllConnections();
    server.close();
  }
  running.clear();
}

/** Serves a folder: to pages of its own origin, which are isolated, or to others too. */
export function serveFolder(folder: string, to: 'isolated' | 'shared', policy?: string): Promise<string> {
  return listen((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = join(folder, normalize(pathname === '/' ? '/index.html' : pathname));
    const headers = to === 'isolated' ? ISOLATED : SHARED;
    if (request.method === 'OPTIONS') return void response.writeHead(204, headers).end();
    if (!existsSync(path) || !statSync(path).isFile()) return void response.writeHead(404, headers).end();
    const { size } = statSync(path);
    const type = TYPES[extname(path)] ?? 'application/octet-stream';
    const common = { ...headers, 'Content-Type': type, ...(policy && { 'Content-Security-Policy': policy }) };
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const begin = range ? Number(range[1]) : 0;
    const end = range ? Math.min(Number(range[2]) + 1, size) : size;
    if (range) Object.assign(common, { 'Content-Range': `bytes ${String(begin)}-${String(end - 1)}/${String(size)}` });
    response.writeHead(range ? 206 : 200, { ...common, 'Content-Length': end - begin });
    if (request.method === 'HEAD') return void response.end();
    createReadStream(path, { start: begin, end: end - 1 }).pipe(response);
  });
}

/** Passes on what another server answers, as an isolated page; web sockets too, by which dev servers speak. */
export function isolate(port: number): Promise<string> {
  const host = `localhost:${String(port)}`;
  return listen(
    (request, response) => {
      const { method, url, headers } = request;
      const asked = ask({ host: 'localhost', port, path: url, method, headers: { ...headers, host } });
      asked.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...ISOLATED });
        answer.pipe(response);
      });
      asked.on('error', () => response.writeHead(502).end());
      request.pipe(asked);
    },
    ({ method, url, headers }, socket, head) => {
      const other = connect(port, 'localhost');
      const lines = Object.entries({ ...headers, host, origin: `http://${host}` }).map(
        ([name, value]) => `${name}: ${String(value)}`,
      );
      other.write(`${method ?? 'GET'} ${url ?? '/'} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      other.write(head);
      other.pipe(socket).pipe(other);
      for (const end of [socket, other]) end.on('error', () => (socket.destroy(), other.destroy()));
    },
  );
}
