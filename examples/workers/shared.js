// One engine for all tabs of this origin. Importing the worker's script makes the engine run in this thread.
import './qsf/worker.js';
import { MiB, QSF } from './qsf/index.js';

let opening;

async function tell({ model, prompt }, port) {
  const llm = await (opening ??= QSF.load(model, { memory: 16 * MiB }));
  const { engine } = await llm.stats();
  for await (const piece of llm.generate(prompt, { maxTokens: 40, temperature: 0 })) port.postMessage({ piece });
  port.postMessage({ threads: engine.threads });
}

globalThis.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => tell(data, port).catch(({ message }) => port.postMessage({ error: message }));
};
