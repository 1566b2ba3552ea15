// The engine in the thread of a shared or service worker: the worker's script offers it, and load() takes it.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { unwrap } from '../../web/src/contract.js';
import { ownWorker } from '../../web/src/page/host.js';
import { QSF } from '../../web/src/page/qsf.js';

// The modules are not built for unit tests.
vi.mock('../../web/src/wasm/wasm.js', () => ({
  startModule: () => Promise.reject(new Error('none')),
  THREAD: 'em-pthread',
}));
vi.mock('../../web/src/wasm/maker.js', () => ({ startMaker: () => Promise.reject(new Error('none')) }));

beforeEach(async () => {
  vi.resetModules();
  vi.stubGlobal('location', new URL('https://page.test/service.js'));
  vi.stubGlobal('WorkerGlobalScope', Object);
  Reflect.deleteProperty(globalThis, Symbol.for('qsf.thread'));
  Reflect.deleteProperty(globalThis, 'Worker');
  await import('../../web/src/worker.js');
});
afterEach(() => {
  Reflect.deleteProperty(globalThis, Symbol.for('qsf.thread'));
  vi.unstubAllGlobals();
});

it('answers calls, has one model for each load(), and ends', async () => {
  const hosts = [await ownWorker(undefined), await ownWorker(undefined)];
  for (const { remote } of hosts) {
    const reply = remote.stats().then(unwrap);
    await expect(reply).rejects.toMatchObject({
      name: 'QSFError',
      code: 'bad_state',
      message: 'the model is not open yet',
    });
    await remote.close();
  }
  for (const host of hosts) host.end();
});

it('is taken although the thread could start a worker', async () => {
  const start = vi.fn();
  vi.stubGlobal('Worker', start);
  const { remote, end } = await ownWorker(undefined);
  await remote.close();
  end();
  expect(start).not.toHaveBeenCalled();
});

it('refuses threads, which need further workers', async () => {
  await expect(QSF.load('https://page.test/m.qsf', { threads: 2 })).rejects.toMatchObject({
    ...{ name: 'QSFError', code: 'unsupported_host' },
    message: '2 threads need further workers, which shared and service workers cannot start',
  });
});
