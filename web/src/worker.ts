// The worker's side: one model. The script also runs the workers that read ahead for it. The module's threads load it
// too, but the module's own script starts their work, which it recognizes by their name.
import * as Comlink from './comlink.js';

import { answering } from './contract.js';
import type { EngineWorker } from './contract.js';
import { Model } from './worker/model.js';
import { QSFError } from './errors.js';
import { FILLER, serveFills } from './sources/filler.js';
import { READER, serveReads } from './sources/reader.js';
import { startMaker } from './wasm/maker.js';
import { THREAD, startModule } from './wasm/wasm.js';
import { afterOthers, beforeOthers, endWithStarter, tellUncaught } from './worker/worker-platform.js';

let model: Model | undefined;

function opened(): Model {
  if (model) return model;
  throw new QSFError('bad_state', 'The model is not open yet.');
}

const worker: EngineWorker = {
  load: async (request, onProgress, onWarning) => {
    await beforeOthers();
    const listeners = { progress: onProgress, warning: onWarning };
    model = await Model.create(request, listeners, { engine: startModule, maker: startMaker });
    await model.load();
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
    await afterOthers();
  },
};

tellUncaught();
const { name = '' } = globalThis as { name?: string };
const tasks: Record<string, () => void> = { [READER]: serveReads, [FILLER]: serveFills, [THREAD]: () => {} };
const task = tasks[name.split(' ', 1)[0]!];
if (task) {
  endWithStarter(name);
  task();
} else {
  Comlink.expose(answering(worker));
  globalThis.postMessage('listening');
}
