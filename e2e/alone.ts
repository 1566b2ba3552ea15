// A page that nobody drives: it opens the model that its address names, as often as it says, and tells the server.
import { QSF } from '../web/src/index.js';

const words = new URLSearchParams(location.search);
try {
  const llm = await QSF.load(words.get('model')!, { memory: Number(words.get('memory')), maxSeqLen: 256 });
  const { io, memory } = await llm.stats();
  await fetch('/told', { method: 'POST', body: JSON.stringify({ io, memory }) });
} catch (error) {
  await fetch('/told', { method: 'POST', body: JSON.stringify({ error: String(error) }) });
}
