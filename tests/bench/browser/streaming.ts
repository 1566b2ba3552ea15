// What streaming in a page is held against: reading alone, and the first token of a model that is kept.
import { QSF } from '../../../web/src/index.js';

import type { Settings } from './page.js';

/** A worker that reads a kept model of `size` bytes by a handle of its own, a MiB at a time, `bytes` of it. */
const reader = `
onmessage = async ({ data: { size, bytes } }) => {
  const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('qsf');
  for await (const folder of models.values()) {
    const file = folder.kind === 'directory' && (await folder.getFileHandle('model').catch(() => undefined));
    if (!file || (await file.getFile()).size !== size) continue;
    const handle = await file.createSyncAccessHandle({ mode: 'readwrite-unsafe' });
    const into = new Uint8Array(2 ** 20);
    const begin = performance.now();
    for (let at = 0; at < bytes; at += into.length) handle.read(into.subarray(0, bytes - at), { at });
    postMessage((performance.now() - begin) / 1000);
    handle.close();
    return;
  }
  postMessage(0);
};`;

/** Seconds that a bare handle takes for so many bytes of a kept model. */
export async function readAlone(size: number, bytes: number): Promise<number> {
  const address = URL.createObjectURL(new Blob([reader], { type: 'text/javascript' }));
  const worker = new Worker(address);
  try {
    const seconds = await new Promise<number>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ size, bytes });
    });
    if (seconds === 0) throw new Error(`no kept model has ${String(size)} bytes`);
    return seconds;
  } finally {
    worker.terminate();
    URL.revokeObjectURL(address);
  }
}

/** Seconds from the call of load() to the first token of a short prompt. */
export async function firstToken({ qsf, memory, threads, variant }: Settings): Promise<number> {
  const begin = performance.now();
  const llm = await QSF.load(qsf, { memory, threads, background: true, ...(variant && { variant }) });
  const pieces = llm.generate([3, 10, 17, 24], { temperature: 0, ignoreEos: true, maxTokens: 1 });
  while (!(await pieces.next()).done);
  return (performance.now() - begin) / 1000;
}
