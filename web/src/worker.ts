// The worker's side: one model. What reads ahead for it is a worker of the same script, and so are the module's threads: what
// starts these is in the module's own, which knows them by their name.
import * as Comlink from './comlink.js';

import { reply, replySync } from './contract.js';
import type { EngineWorker } from './contract.js';
import { Model } from './model.js';
import { QSFError } from './errors.js';
import { FILLER, serveFills } from './sources/filler.js';
import { READER, serveReads } from './sources/reader.js';
import { THREAD, startModule } from './wasm.js';
import { afterOthers, beforeOthers, endWithStarter } from './worker-platform.js';

let model: Model | undefined;

function opened(): Model {
  if (model) return model;
  throw new QSFError('bad_state', 'The model is not open yet.');
}

const worker: EngineWorker = {
  load: (request, onProgress, onWarning) =>
    reply(async () => {
      await beforeOthers();
      model = await Model.create(request, { progress: onProgress, warning: onWarning }, startModule);
      await model.load();
      return model.isKept;
    }),
  start: (request) => reply(() => opened().start(request)),
  next: () => reply(() => opened().next()),
  embed: (request) => reply(() => opened().embed(request)),
  stop: () => reply(() => model?.stop()),
  trace: () => replySync(() => opened().trace()),
  stats: () => replySync(() => opened().stats()),
  tokenize: (text, special) => replySync(() => opened().engine.tokenize(text, special)),
  detokenize: (tokens) => replySync(() => opened().engine.detokenize(tokens)),
  close: () =>
    reply(async () => {
      await model?.close();
      await afterOthers();
    }),
};

const { name = '' } = globalThis as { name?: string };
const tasks: Record<string, () => void> = { [READER]: serveReads, [FILLER]: serveFills, [THREAD]: () => {} };
const task = tasks[name.split(' ', 1)[0]!];
if (task) {
  endWithStarter(name);
  task();
} else {
  Comlink.expose(worker);
  globalThis.postMessage('listening');
}
