// The place of an engine: a worker of this page, or one that several tabs share (shared.ts).
import * as Comlink from '../comlink.js';

import { remoteEngine } from '../contract.js';
import type { LoadRequest, RemoteEngine, Reply } from '../contract.js';
import { QSFError, messageOf } from '../errors.js';
import { startWorker } from '../platform.js';

export interface Host {
  readonly remote: RemoteEngine;
  /** Rejects when the engine cannot run. */
  readonly failed: Promise<never>;
  /** Ends the engine at once. */
  end(): void;
}

/**
 * Starts a worker of this page's own from `workerUrl`, by default from the package's script. Rejects with
 * unsupported_host.
 */
export async function ownWorker(workerUrl: string | undefined): Promise<Host> {
  const worker = await startWorker(workerUrl).catch((cause: unknown) => {
    if (cause instanceof QSFError) throw cause;
    throw new QSFError('unsupported_host', `the worker could not be started: ${messageOf(cause)}`, { cause });
  });
  const proxy = Comlink.wrap<RemoteEngine>(worker);
  /** Functions run here, and a model's bytes move to the worker without a further copy. */
  const lent = (arg: unknown) => {
    if (typeof arg === 'function') return Comlink.proxy(arg);
    const { source, draft } = (arg ?? {}) as Partial<LoadRequest>;
    const bytes = [source, draft].filter((of) => of instanceof Uint8Array);
    return bytes.length > 0
      ? Comlink.transfer(
          arg,
          bytes.map(({ buffer }) => buffer),
        )
      : arg;
  };
  return {
    remote: remoteEngine((method, args) => {
      const call = proxy[method] as (...args: unknown[]) => Promise<Reply<unknown>>;
      return call(...args.map(lent));
    }),
    failed: failureOf(worker),
    end: () => {
      proxy[Comlink.releaseProxy]();
      worker.terminate();
    },
  };
}

/** Rejects with unsupported_host when a worker could not run. */
function failureOf(worker: Worker): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      reject(new QSFError('unsupported_host', `the worker could not run: ${event.message || 'it ended'}`));
    });
  });
  failed.catch(() => {});
  return failed;
}
