import type { CreateMaker } from './wasm/maker.js';

declare const create: CreateMaker;
export default create;
