// The names that a worker's script expects in a browser and that Node has under other names. Loaded before everything
// else.
import { availableParallelism } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';

import { NodeWorker } from './thread.js';
import type { WorkerData } from './thread.js';

const { name } = workerData as WorkerData;
const messages = new EventTarget();
parentPort!.on('message', (data: unknown) => {
  const event = new MessageEvent('message', { data });
  messages.dispatchEvent(event);
  (globalThis as { onmessage?: (event: MessageEvent) => void }).onmessage?.(event);
});

const given: Record<string, unknown> = {
  self: globalThis,
  name,
  location: { href: import.meta.url },
  Worker: NodeWorker,
  crossOriginIsolated: true, // memory may be shared
  postMessage: (data: unknown, transfer?: []) => parentPort!.postMessage(data, transfer),
  addEventListener: messages.addEventListener.bind(messages),
  removeEventListener: messages.removeEventListener.bind(messages),
  close: () => process.exit(),
};
for (const [key, value] of Object.entries(given))
  Object.defineProperty(globalThis, key, { value, writable: true, configurable: true });
if (!('navigator' in globalThis))
  Object.defineProperty(globalThis, 'navigator', { value: { hardwareConcurrency: availableParallelism() } });
