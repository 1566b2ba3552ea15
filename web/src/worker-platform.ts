// What a browser's worker does its own way. The package for Node has node/worker-platform.ts in its place.
import { QSFError } from './errors.js';
import type { ByteSource } from './sources/source.js';

/** What starts more workers like this one. */
export interface OwnScript {
  address: string;
  /** What a bundler has made of it. */
  type: 'module' | 'classic';
}

export function ownScript(): OwnScript {
  const { importScripts } = globalThis as { importScripts?: () => void };
  try {
    importScripts?.(); // there in both kinds, but a module's throws
    return { address: globalThis.location.href, type: 'classic' };
  } catch {
    return { address: globalThis.location.href, type: 'module' };
  }
}

/** The WebAssembly module at an address. */
export async function fetchModule(url: string): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: 'same-origin' });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new QSFError('network_error', `The WebAssembly module ${url} could not be fetched: ${why}.`, { url, cause });
  }
  if (!response.ok) {
    const { status } = response;
    throw new QSFError(
      'http_status',
      `The WebAssembly module ${url} answered ${status}; put the package's .wasm files there, or say where they are by ` +
        'wasmUrl.',
      { url, status },
    );
  }
  const type = response.headers.get('Content-Type') ?? '';
  try {
    if (type.startsWith('application/wasm')) return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new QSFError(
      'unsupported_host',
      `${url}, which answers with ${type || 'no type'}, is not the package's WebAssembly module: ${why}`,
      { url, cause },
    );
  }
}

/** Files are opened by pages, which give a File. */
export function openFile(url: string): Promise<ByteSource> {
  throw new QSFError('bad_argument', `${url} is a file: give it as a File or Blob.`);
}
