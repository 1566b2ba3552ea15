// The worker's side: one model. The script also runs the workers that read ahead for it. The module's threads load it
// too, but the module's own script starts their work, which it recognizes by their name. A shared or service worker, which
// cannot start workers, imports the script, and each of its models computes in that thread.
import * as Comlink from './comlink.js';

import { answering } from './contract.js';
import type { EngineWorker, LoadRequest } from './contract.js';
import { offerThread } from './thread.js';
import { Model } from './worker/model.js';
import { QSFError } from './errors.js';
import { FILLER, serveFills } from './sources/filler.js';
import { READER, serveReads } from './sources/reader.js';
import { startMaker } from './wasm/maker.js';
import { THREAD, startModule } from './wasm/wasm.js';
import { afterOthers, beforeOthers, endWithStarter, tellUncaught } from './worker/worker-platform.js';

/** Returns the calls of one model. `isAlone` is true in a worker of its own, which may start others. */
function engineWorker(isAlone: boolean): EngineWorker {
  let model: Model | undefined;
  const opened = (): Model => {
    if (model) return model;
    throw new QSFError('bad_state', 'the model is not open yet');
  };
  return {
    load: async (request, onProgress, onWarning) => {
      if (isAlone) await beforeOthers();
      const warned: unknown[] = [];
      const listeners = { progress: onProgress, warning: (sentence: string) => void warned.push(onWarning(sentence)) };
      const suited = isAlone ? request : inThread(request);
      model = await Model.create(suited, listeners, { engine: startModule, maker: startMaker });
      await model.load();
      await Promise.all(warned); // they come by another port than the answer
      return model.isKept;
    },
    start: (call, request) => opened().start(call, request),
    next: (id) => opened().next(id),
    embed: (call, request) => opened().embed(call, request),
    stop: (id, shown) => model?.stop(id, shown),
    rewind: (call, position) => opened().rewind(call, position),
    save: (call, request) => opened().save(call, request),
    restore: (call, from) => opened().restore(call, from),
    trace: () => opened().trace(),
    stats: () => opened().stats(),
    render: (chat) => opened().engine.render(chat),
    tokenize: (text, special) => opened().engine.tokenize(text, special),
    detokenize: (tokens, special) => opened().engine.detokenize(tokens, special),
    info: () => opened().engine.info(),
    close: async () => {
      await model?.close();
      if (isAlone) await afterOthers();
    },
  };
}

/** Returns a request without further threads. Throws unsupported_host for one that asks for some. */
function inThread(request: LoadRequest): LoadRequest {
  const { threads = 1 } = request;
  if (threads === 1) return { ...request, threads };
  const sentence = `${threads} threads need further workers, which shared and service workers cannot start`;
  throw new QSFError('unsupported_host', sentence);
}

const { name = '' } = globalThis as { name?: string };
const tasks: Record<string, () => void> = { [READER]: serveReads, [FILLER]: serveFills, [THREAD]: () => {} };
const task = tasks[name.split(' ', 1)[0]!];
if (isShared()) {
  offerThread(() => {
    const { port1, port2 } = new MessageChannel();
    Comlink.expose(answering(engineWorker(false)), port2);
    return port1;
  });
} else if (task) {
  tellUncaught();
  endWithStarter(name);
  task();
} else {
  tellUncaught();
  Comlink.expose(answering(engineWorker(true)));
  globalThis.postMessage('listening');
}

/** Whether this is the thread of a shared or service worker. */
function isShared(): boolean {
  return 'WorkerGlobalScope' in globalThis && !('DedicatedWorkerGlobalScope' in globalThis);
}
