import type { CreateModule } from './wasm/wasm.js';

declare const create: CreateModule;
export default create;
