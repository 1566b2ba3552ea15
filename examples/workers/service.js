// Requests of OpenAI's interface to this origin are answered by an engine in this thread.
import './qsf/worker.js';
import { openaiFetch } from './qsf/fetch.js';
import { MiB, QSF } from './qsf/index.js';

const model = new URLSearchParams(location.search).get('model') ?? '/stories-8bit.qsf';
let answering;
const open = () => QSF.load(model, { memory: 16 * MiB }).then((llm) => openaiFetch(llm));

addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  if (!new URL(event.request.url).pathname.startsWith('/v1/')) return;
  event.respondWith((answering ??= open()).then((answer) => answer(event.request)));
});
