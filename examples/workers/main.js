const asked = new URLSearchParams(location.search);
const model = asked.get('model') ?? '/stories-8bit.qsf';
const prompt = 'Once upon a time';

/** Asks the shared worker. Returns the number of its threads. */
function fromShared(story) {
  const { port } = new SharedWorker('shared.js', { type: 'module' });
  return new Promise((resolve, reject) => {
    port.onmessage = ({ data: { piece, threads, error } }) => {
      if (error !== undefined) reject(new Error(error));
      else if (threads !== undefined) resolve(threads);
      else story.textContent += piece;
    };
    port.postMessage({ model, prompt });
  });
}

/** Asks the service worker, as a client of OpenAI's interface does. */
async function fromService(story) {
  const taken = new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve));
  const address = `service.js?${new URLSearchParams({ model }).toString()}`;
  await navigator.serviceWorker.register(address, { type: 'module' });
  if (!navigator.serviceWorker.controller) await taken;
  const body = JSON.stringify({ model: 'local', prompt, max_tokens: 40, temperature: 0 });
  const response = await fetch('/v1/completions', { method: 'POST', body });
  const { choices, error } = await response.json();
  if (error) throw new Error(error.message);
  story.textContent = choices[0].text;
  return 1;
}

const story = document.querySelector('#story');
const telling = asked.get('kind') === 'service' ? fromService(story) : fromShared(story);
telling.then(
  (threads) => {
    story.title = `${threads} threads`;
  },
  (error) => {
    story.textContent = error.message;
    story.title = 'failed';
  },
);
