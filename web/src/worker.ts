// The worker's script. The module's threads are workers of the same script: what starts them is in the module's own, which
// knows them by their name.
import { serve } from './serve.js';
import { startModule } from './wasm.js';

const { name } = globalThis as { name?: string };
if (!name?.startsWith('em-pthread')) serve(startModule);
