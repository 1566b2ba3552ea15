// The worker's side: one model.
import * as Comlink from './comlink.js';

import { reply, replySync } from './contract.js';
import type { EngineWorker } from './contract.js';
import { Model } from './model.js';
import { QSFError } from './errors.js';

let model: Model | undefined;

function opened(): Model {
  if (model) return model;
  throw new QSFError('bad_state', 'The model is not open yet.');
}

const worker: EngineWorker = {
  load: (request, onProgress, onWarning) =>
    reply(async () => {
      model = await Model.create(request, { progress: onProgress, warning: onWarning });
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
  close: () => reply(() => model?.close()),
};

Comlink.expose(worker);
