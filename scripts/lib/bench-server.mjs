// A server of the browser benchmarks: the package as published in place of its sources, the benchmark's page, the
// peers' packages, and models from a folder. Pages are cross-origin isolated, because threads and fine clocks need it.
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';

import ts from 'typescript';

import { root } from './process.mjs';

const types = {
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.gguf': 'application/octet-stream',
  '.qsf': 'application/octet-stream',
};

const page =
  '<!doctype html><title>bench</title><input type="file"><script type="module" src="/tests/bench/browser/page.js"></script>';

/** Returns the file of an address, or undefined. Nothing outside these folders is served. */
function fileOf(path, models) {
  const places = [
    ['/web/src/', join(root, 'dist')],
    ['/tests/bench/node_modules/', join(root, 'tests', 'bench', 'node_modules')],
    ['/models/', models],
  ];
  const place = places.find(([prefix]) => path.startsWith(prefix));
  if (!place || path.includes('..')) return undefined;
  const file = join(place[1], path.slice(place[0].length));
  return existsSync(file) ? file : undefined;
}

function transpiled(path) {
  const name = /^\/tests\/bench\/browser\/([\w-]+)\.js$/.exec(path)?.[1];
  if (!name) return undefined;
  const source = readFileSync(join(root, 'tests', 'bench', 'browser', `${name}.ts`), 'utf8');
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  return ts.transpileModule(source, { compilerOptions }).outputText;
}

function answer(request, response, models) {
  const { pathname } = new URL(request.url, 'http://localhost');
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
  response.setHeader('Cache-Control', 'no-store');
  const text = pathname === '/' ? page : transpiled(pathname);
  if (text !== undefined) {
    response.writeHead(200, { 'Content-Type': pathname === '/' ? 'text/html' : types['.js'] }).end(text);
    return;
  }
  const file = fileOf(pathname, models);
  if (!file) {
    response.writeHead(404).end();
    return;
  }
  const { size } = statSync(file);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  const [begin, end] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
  const headers = { 'Content-Type': types[extname(file)] ?? 'text/plain', 'Content-Length': end - begin + 1 };
  if (range) headers['Content-Range'] = `bytes ${begin}-${end}/${size}`;
  response.writeHead(range ? 206 : 200, headers);
  createReadStream(file, { start: begin, end }).pipe(response);
}

/** Starts the server. Returns its origin and a function that stops it. */
export async function serveBench(models) {
  const server = createServer((request, response) => answer(request, response, models));
  await new Promise((resolve) => server.listen(0, 'localhost', resolve));
  const stop = () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve)));
  return { origin: `http://localhost:${server.address().port}`, stop };
}
