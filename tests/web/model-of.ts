// Models of the worker with an engine and a source of a test.
import type { LoadRequest } from '../../web/src/contract.js';
import type { ByteSource } from '../../web/src/sources/source.js';
import type { Engine } from '../../web/src/wasm/engine.js';
import { Loader } from '../../web/src/worker/loader.js';
import type { Listeners } from '../../web/src/worker/loader.js';
import { Model, openerOf } from '../../web/src/worker/model.js';

export const modelOf = (request: LoadRequest, engine: Engine, source: ByteSource, tell: Listeners): Model =>
  new Model(request, new Loader(request, engine, source, tell, openerOf(engine)));
