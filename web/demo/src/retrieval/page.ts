// The page that searches the visitor's files: they become passages with vectors, and a question finds the nearest ones.

import type { QSF } from 'qsf';
import { copy } from '../buttons.js';
import { isCancelled } from '../cancelled.js';
import { byId, ignoreDoubleClicks, ignoreStrayClicks, make } from '../dom.js';
import { growing } from '../field.js';
import { hideNotice, showFailure, showNotice } from '../notice.js';
import { keepOffline } from '../offline.js';
import { setUpPicker } from '../picker.js';
import { embedderOf, rememberChoice, rememberedChoice } from './embedder.js';
import { Files } from './files.js';
import { Library } from './library.js';
import type { Hit } from './library.js';
import { ModelPlace } from './place.js';
import { openStore } from './store.js';

const STORIES = new URL('models/stories-8bit.qsf', document.baseURI).href;
/** Passages that are shown, and those among which a reranker chooses them. */
const SHOWN = 6;
const RANKED = 20;
/** Passages that are unfolded. */
const UNFOLDED = 3;

const form = byId('ask', HTMLFormElement);
const field = byId('question', HTMLTextAreaElement);
growing(field);
const button = byId('ask-button', HTMLButtonElement);
const note = byId('ask-note', HTMLElement);
const answer = byId('answer', HTMLElement);
const found = byId('found', HTMLElement);
const hitRows = byId('hits', HTMLElement);

let asking: AbortController | undefined;

const library = await Library.open(await openStore());
const embedding: ModelPlace = new ModelPlace({
  ...{ id: 'embedding', kind: 'embedding', title: 'Choose an embedding model', builtIn: STORIES },
  none: 'Makes the vectors of passages and questions.',
  check: async (llm) => void (await llm.embed('A text')),
  changed: (llm) => {
    if (llm && typeof embedding.source === 'string')
      rememberChoice({ source: embedding.source, memory: embedding.memory });
    void files.use(llm && embedderOf(llm, embedding.source!));
  },
});
const reranker = new ModelPlace({
  ...{ id: 'reranker', kind: 'rerank', title: 'Choose a reranker' },
  none: 'Optional: reads each of the 20 nearest passages with the question, and orders them.',
  check: async (llm) => void (await llm.rerank('A question', ['A text'])),
  changed: () => undefined,
});
const answering = new ModelPlace({
  ...{ id: 'answering', kind: 'chat', title: 'Choose a model that answers' },
  none: 'Optional: answers from the passages that were found.',
  check: async (llm) => {
    if ((await llm.info()).chatTemplate === undefined) throw new Error('this model has no chat template');
  },
  changed: () => undefined,
});
const files = new Files(library, () => embedding.choose());

interface Ranked extends Hit {
  rank?: number;
}

async function search(llm: QSF, question: string, signal: AbortSignal): Promise<Ranked[]> {
  const embedder = embedderOf(llm, embedding.source!);
  const hits = await library.find(question, embedder, reranker.llm ? RANKED : SHOWN, signal);
  if (!reranker.llm || hits.length === 0) return hits;
  note.textContent = `Reading ${hits.length} passages …`;
  const texts = hits.map(({ text }) => text);
  const ranked = await reranker.llm.rerank(question, texts, { signal });
  return ranked.slice(0, SHOWN).map(({ index, score }) => ({ ...hits[index]!, rank: score }));
}

async function ask(question: string): Promise<void> {
  hideNotice();
  const { llm } = embedding;
  if (library.files.length === 0) {
    showNotice('ask', { title: 'There are no files yet', text: 'Add some above; then ask.' });
    return;
  }
  if (llm === undefined) {
    const title = 'No model makes vectors yet';
    showNotice('ask', { title, text: 'Choose an embedding model, which finds passages.' }, 'Choose', () =>
      embedding.choose(),
    );
    return;
  }
  const { signal } = (asking = new AbortController());
  button.textContent = 'Stop';
  answer.setAttribute('aria-busy', 'true');
  answer.replaceChildren();
  found.hidden = true;
  note.textContent = 'Searching …';
  try {
    const hits = await search(llm, question, signal);
    showHits(hits);
    if (hits.length === 0) {
      note.textContent = 'No passage has a vector yet.';
      return;
    }
    note.textContent = '';
    if (!answering.llm) return;
    // The renderer of Markdown is most of this page's code, and only answers need it.
    const { answerInto } = await import('./answer.js');
    await answerInto(answer, answering.llm, answering.title, question, hits, signal, (words) => {
      note.textContent = words;
    });
  } catch (error) {
    note.textContent = '';
    if (!signal.aborted && !isCancelled(error)) showFailure('ask', error, () => void ask(question));
  } finally {
    asking = undefined;
    button.textContent = 'Ask';
    answer.setAttribute('aria-busy', 'false');
    // An answer says it itself.
    if (signal.aborted && answer.childElementCount === 0) note.textContent = 'Stopped.';
  }
}

function showHits(hits: readonly Ranked[]): void {
  found.hidden = hits.length === 0;
  hitRows.replaceChildren(
    ...hits.map(({ file, text, score, rank }, i) => {
      const scores = [`likeness ${score.toFixed(2)}`, ...(rank === undefined ? [] : [`rank score ${rank.toFixed(2)}`])];
      const head = make(
        'summary',
        {},
        make('span', { class: 'hit-name' }, `[${i + 1}] ${file.name}`),
        make('span', { class: 'hit-score' }, scores.join(' · ')),
      );
      const details = make('details', { class: 'hit' }, head, make('p', { dir: 'auto' }, text));
      details.open = i < UNFOLDED;
      return make('li', {}, details);
    }),
  );
}

function setUp(): void {
  ignoreStrayClicks();
  setUpPicker();
  const isTouched = matchMedia('(pointer: coarse)');
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || isTouched.matches) return;
    event.preventDefault();
    if (!asking) form.requestSubmit();
  });
  ignoreDoubleClicks(button);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (asking) asking.abort();
    else if (question === '') field.focus();
    else void ask(question);
  });
  document.addEventListener('keydown', ({ key, isComposing }) => {
    if (key === 'Escape' && !isComposing && !document.querySelector('dialog[open]')) asking?.abort();
  });
  answer.addEventListener('click', ({ target }) => {
    if (!(target instanceof HTMLElement) || !target.classList.contains('copy')) return;
    void copy(target.closest('.code')?.querySelector('pre')?.textContent ?? '', target);
  });
}

setUp();
const choice = rememberedChoice();
if (choice && library.files.length > 0) void embedding.open(choice.source, choice.memory);
keepOffline();
