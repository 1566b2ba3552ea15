// Where an engine runs: in a worker of this page, or in one that several tabs share (shared.ts).
import * as Comlink from './comlink.js';

import type { EngineWorker } from './contract.js';
import { QSFError } from './errors.js';
import { startWorker } from './platform.js';

/** What the worker answers, asked from elsewhere. */
export type RemoteEngine = {
  [K in keyof EngineWorker]: (...args: Parameters<EngineWorker[K]>) => Promise<Awaited<ReturnType<EngineWorker[K]>>>;
};

export interface Host {
  readonly remote: RemoteEngine;
  /** Rejects when the engine cannot run. */
  readonly failed: Promise<never>;
  /** Ends it at once. */
  end(): void;
}

/** A worker of this page's own, whose script lies at `workerUrl` or beside the package's own. */
export async function ownWorker(workerUrl: string | undefined): Promise<Host> {
  const worker = await startWorker(workerUrl);
  const proxy = Comlink.wrap<EngineWorker>(worker);
  return {
    remote: {
      load: (request, report, warn) => proxy.load(request, Comlink.proxy(report), Comlink.proxy(warn)),
      start: (request) => proxy.start(request),
      next: () => proxy.next(),
      embed: (request) => proxy.embed(request),
      stop: () => proxy.stop(),
      stats: () => proxy.stats(),
      trace: () => proxy.trace(),
      tokenize: (text, special) => proxy.tokenize(text, special),
      detokenize: (tokens) => proxy.detokenize(tokens),
      close: () => proxy.close(),
    },
    failed: failureOf(worker),
    end: () => {
      proxy[Comlink.releaseProxy]();
      worker.terminate();
    },
  };
}

/** Rejects when a worker could not run. */
function failureOf(worker: Worker): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      reject(new QSFError('unsupported_host', `The worker could not run: ${event.message || 'it ended'}.`));
    });
  });
  failed.catch(() => {});
  return failed;
}
