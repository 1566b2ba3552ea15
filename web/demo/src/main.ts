// The page: a prompt, a story streamed as it is made, a budget, and what the engine does with it.

import { QSFError } from 'qsf';
import type { QSF, Stats } from 'qsf';
import { LAST_STOP, budgetAt, stopFor } from './budget.js';
import { onRemove, showCache, showDownload } from './cache.js';
import { byId, make } from './dom.js';
import { drawFigures } from './figures.js';
import * as format from './format.js';
import { drawMap, drawStrip } from './map.js';
import { hideNotice, showNotice } from './notice.js';
import { OptionFields } from './options.js';
import { noteRun } from './runs.js';
import { ModelSlot } from './slot.js';
import { addToStory, beginStory, endStory } from './story.js';

const MODEL = new URL('models/stories-8bit.qsf', document.baseURI).href;

/** In bytes: less than the built-in model's weights, so that the first story is streamed. */
const FIRST_BUDGET = 4 * 1024 * 1024;

const IDEAS = ['In the forest', 'The old king', '“Come in,” said'];

/** How often the figures are refreshed while a story is written, in ms. */
const REFRESH = 200;

/** How long the slider must rest before the model is opened anew, in ms. */
const REST = 250;

const form = byId('form', HTMLFormElement);
const prompt = byId('prompt', HTMLTextAreaElement);
const writeButton = byId('write', HTMLButtonElement);
const stopButton = byId('stop', HTMLButtonElement);
const slider = byId('budget', HTMLInputElement);
const status = byId('status', HTMLElement);
const map = byId('map', HTMLElement);
const strip = byId('strip', HTMLElement);
const options = new OptionFields(byId('fields', HTMLElement));
const slot = new ModelSlot(MODEL);

/** The model that is open or being opened; gives undefined when it was refused or another choice overtook it. */
let opened: Promise<QSF | undefined> | undefined;
let refused = false;
let writing: AbortController | undefined;

const chosenBudget = (): number => budgetAt(slider.valueAsNumber);

/** Opens the model with the chosen budget; a refused one is followed by the next larger, where `climb` says so. */
function open({ climb = false } = {}): Promise<QSF | undefined> {
  stop();
  hideNotice();
  refused = false;
  updateButtons();
  const memory = chosenBudget();
  status.textContent = `Planning for ${format.budget(memory)} …`;
  opened = slot
    .open(memory, (progress) => {
      if (progress.phase === 'download') showDownload(progress);
    })
    .then(async (llm) => {
      drawPlan(await llm.stats());
      return llm;
    })
    .catch((error: unknown) => {
      if (isCancelled(error)) return undefined;
      const larger = tooSmall(error) && slider.valueAsNumber < LAST_STOP;
      if (larger && climb) setBudget(slider.valueAsNumber + 1, { climb });
      else refuse(error, larger);
      return undefined;
    });
  return opened;
}

function drawPlan(stats: Stats): void {
  drawMap(map, stats);
  drawStrip(strip, stats);
  drawFigures(stats);
  const { maxSeqLen, segments, pinnedSegments } = stats.plan;
  status.textContent =
    segments === pinnedSegments
      ? `All of the model fits. Room for ${maxSeqLen} tokens.`
      : `The model does not fit whole, and runs all the same: the rest streams. Room for ${maxSeqLen} tokens.`;
  void showCache(MODEL);
}

function clearPlan(words: string): void {
  map.replaceChildren();
  strip.replaceChildren();
  status.textContent = words;
  void showCache(MODEL);
}

/** Says why the model did not open, and offers a way on. */
function refuse(error: unknown, larger: boolean): void {
  refused = true;
  updateButtons();
  clearPlan('');
  if (larger) {
    showNotice(error, 'Use the smallest that works', () => setBudget(slider.valueAsNumber + 1, { climb: true }));
  } else {
    showNotice(error, 'Try again', () => void open());
  }
}

/** Writes a story from the prompt, once the model is open. */
async function write(): Promise<void> {
  const opening = opened ?? open();
  const { signal } = (writing = new AbortController());
  updateButtons();
  hideNotice();
  const begin = prompt.value;
  beginStory(begin);
  let refresh: ReturnType<typeof setInterval> | undefined;
  try {
    const llm = await unlessAborted(opening, signal);
    if (llm === undefined) return;
    const before = await llm.stats();
    refresh = setInterval(() => void llm.stats().then(drawFigures, () => undefined), REFRESH);
    for await (const piece of llm.generate(begin, { ...options.read(), special: false, signal })) addToStory(piece);
    const after = await llm.stats();
    drawFigures(after);
    noteRun(before, after);
  } catch (error) {
    if (!isCancelled(error)) showNotice(error, 'Try again', () => void write());
  } finally {
    clearInterval(refresh);
    endStory();
    if (writing.signal === signal) writing = undefined;
    updateButtons();
  }
}

function stop(): void {
  writing?.abort();
}

function updateButtons(): void {
  writeButton.disabled = refused || writing !== undefined;
  stopButton.disabled = writing === undefined;
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    promise.then(resolve, reject);
  });
}

const isCancelled = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || (error instanceof QSFError && error.code === 'cancelled'));

const tooSmall = (error: unknown): boolean => error instanceof QSFError && error.code === 'budget_too_small';

function setBudget(stop: number, { climb = false } = {}): void {
  slider.value = String(stop);
  showBudget();
  void open({ climb });
}

function showBudget(): void {
  const text = format.budget(chosenBudget());
  byId('budget-text', HTMLElement).textContent = text;
  slider.setAttribute('aria-valuetext', text);
}

function setUpBudget(): void {
  slider.max = String(LAST_STOP);
  slider.value = String(stopFor(FIRST_BUDGET));
  byId('scale-low', HTMLElement).textContent = format.budget(budgetAt(0));
  byId('scale-high', HTMLElement).textContent = format.budget(budgetAt(LAST_STOP));
  showBudget();
  let rest: ReturnType<typeof setTimeout>;
  slider.addEventListener('input', () => {
    showBudget();
    clearTimeout(rest);
    rest = setTimeout(() => void open(), REST);
  });
}

function setUpWriting(): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void write();
  });
  stopButton.addEventListener('click', stop);
  byId('modifier', HTMLElement).textContent = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘' : 'Ctrl';
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') stop();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !writeButton.disabled) form.requestSubmit();
  });
  byId('ideas', HTMLElement).append(
    ...IDEAS.map((idea) => {
      const chip = make('button', { type: 'button' }, `${idea} …`);
      chip.addEventListener('click', () => {
        prompt.value = idea;
        prompt.focus();
      });
      return chip;
    }),
  );
}

onRemove(async () => {
  stop();
  opened = undefined;
  try {
    await slot.forget();
    clearPlan('Removed. The next story fetches the model again.');
  } catch (error) {
    clearPlan('');
    showNotice(error, 'Open it again', () => void open());
  }
});
setUpBudget();
setUpWriting();
void open();
