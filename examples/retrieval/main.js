import { MiB, QSF } from 'qsf';
import { messageWith } from 'qsf/retrieval';

import { Search } from './search.js';

const asked = new URLSearchParams(location.search);
const place = (id) => document.querySelector(`#${id}`);

// A page of your own names two models of QSF.models: one that embeds, and one that answers.
const encoder = QSF.models.find(({ id }) => id === 'all-minilm-l6-v2');
const writer = QSF.models.find(({ id }) => id === 'qwen2.5-0.5b');
const model = asked.get('model');
const search = QSF.load(model ?? encoder.source, { memory: model ? 16 * MiB : encoder.memory }).then(
  (llm) => new Search(llm, model ? undefined : encoder.prefixes),
);

/** Opened with the first question. The built-in model continues stories, so it gets a template that passes the text on. */
let answering;
const options = model ? { template: '{{ messages[-1].content }}', maxTokens: 40, temperature: 0 } : {};
const open = () => QSF.load(model ?? writer.source, { memory: model ? 16 * MiB : writer.memory });

async function add(files) {
  for (const file of files) {
    place('status').textContent = `Reading ${file.name} …`;
    await (await search).add(file.name, await file.text());
  }
  place('status').textContent = `${(await search).size} passages.`;
}

async function ask(question) {
  const answer = place('answer');
  answer.textContent = '';
  answer.ariaBusy = 'true';
  const found = await (await search).find(question, 3);
  const items = found.map(({ name, text, score }) => {
    const item = document.createElement('li');
    item.textContent = `${text} (${name}, ${score.toFixed(2)})`;
    return item;
  });
  place('found').replaceChildren(...items);
  const llm = await (answering ??= open());
  for await (const piece of llm.chat(messageWith(question, found), options)) answer.textContent += piece;
  answer.ariaBusy = 'false';
}

const show = (error) => {
  place('status').textContent = error.message;
};
place('files').addEventListener('change', ({ target }) => add(target.files).catch(show));
place('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  ask(place('question').value).catch(show);
});
