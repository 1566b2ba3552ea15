// The page: a prompt, a story streamed as it is made, a budget, and what the engine does with it.

import { QSFError } from 'qsf';
import type { QSF, Stats } from 'qsf';
import { ALL, FEW, budgetAt, stopFor } from './budget.js';
import { onRemove, showCache, showDownload } from './cache.js';
import { byId, isOff, make, setOff } from './dom.js';
import { drawFigures } from './figures.js';
import * as format from './format.js';
import { drawMap, drawStrip } from './map.js';
import { hideNotice, showNotice } from './notice.js';
import type { Place } from './notice.js';
import { keepOffline } from './offline.js';
import { OptionFields } from './options.js';
import type { Options } from './options.js';
import { setUpOwn, showSource } from './own.js';
import { noteRun } from './runs.js';
import { linkTo, readLink } from './share.js';
import { ModelSlot } from './slot.js';
import { addToStory, beginStory, endStory } from './story.js';
import { beginWork, clearWork, drawWork } from './work.js';

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
const [bar, map, strip] = ['bar', 'map', 'strip'].map((id) => byId(id, HTMLElement)) as [
  HTMLElement,
  HTMLElement,
  HTMLElement,
];
const shareText = byId('share-text', HTMLElement);
const options = new OptionFields(byId('fields', HTMLElement));
const slot = new ModelSlot(MODEL);

/** The model that is open or being opened; gives undefined when it was refused or another choice overtook it. */
let opened: Promise<QSF | undefined> | undefined;
let refused = false;
let writing: AbortController | undefined;
/** What the story on the page was written with. */
let written: { prompt: string; options: Options } | undefined;

const chosenBudget = (): number => budgetAt(slider.valueAsNumber);
const lastStop = (): number => Number(slider.max);

/** Opens the model with the chosen budget; a refused one is followed by the next larger, where `climb` says so. */
function open({ climb = false } = {}): Promise<QSF | undefined> {
  stop();
  hideNotice();
  refused = false;
  updateButtons();
  const memory = chosenBudget();
  status.textContent = `Planning for ${format.budget(memory)} …`;
  showSource(slot.source, MODEL);
  opened = slot
    .open(memory, (progress) => {
      if (progress.phase === 'download') showDownload(progress);
    })
    .then(async (llm) => {
      drawPlan(await llm.stats());
      drawWork(await llm.stats(), await llm.trace());
      return llm;
    })
    .catch((error: unknown) => {
      if (isCancelled(error)) return undefined;
      const larger = tooSmall(error) && slider.valueAsNumber < lastStop();
      if (larger && climb) setBudget(slider.valueAsNumber + 1, { climb });
      else refuse(error, larger);
      return undefined;
    });
  return opened;
}

function drawPlan(stats: Stats): void {
  drawMap(bar, map, stats);
  drawStrip(strip, stats);
  drawFigures(stats);
  const { maxSeqLen, segments, pinnedSegments } = stats.plan;
  status.textContent =
    segments === pinnedSegments
      ? `All of the model fits. Room for ${maxSeqLen} tokens.`
      : `The model does not fit whole, and runs all the same: the rest streams. Room for ${maxSeqLen} tokens.`;
  void showCache(slot.source);
}

function clearPlan(words: string): void {
  for (const drawn of [bar, map, strip]) drawn.replaceChildren();
  clearWork('Nothing is open.');
  status.textContent = words;
  void showCache(slot.source);
}

/** Says why the model did not open, and offers a way on. */
function refuse(error: unknown, larger: boolean): void {
  refused = true;
  updateButtons();
  clearPlan('');
  const memory = tooSmall(error) || (error instanceof QSFError && error.code === 'out_of_memory');
  if (larger) {
    const climb = () => setBudget(slider.valueAsNumber + 1, { climb: true });
    showNotice('budget', error, 'Use the smallest that works', climb);
  } else {
    showNotice(memory ? 'budget' : 'file', error, 'Try again', () => void open());
  }
}

/** Writes a story from the prompt, once the model is open. */
async function write(): Promise<void> {
  const begin = prompt.value;
  if (begin.trim() === '') {
    complain('Nothing to begin with', 'Write a few words above: the story goes on from them.');
    return;
  }
  const opening = opened ?? open();
  const { signal } = (writing = new AbortController());
  updateButtons();
  hideNotice();
  prompt.removeAttribute('aria-invalid');
  let refresh: ReturnType<typeof setInterval> | undefined;
  try {
    const llm = await unlessAborted(opening, signal);
    if (llm === undefined) return;
    const before = await llm.stats();
    const { length } = await llm.tokenize(begin, { special: false });
    const room = before.plan.maxSeqLen;
    if (length >= room) {
      const more = 'Shorten it, or give the model more memory.';
      complain('This beginning is too long', `It has ${length} tokens, and there is room for ${room} of them. ${more}`);
      return;
    }
    beginStory(begin);
    beginWork();
    written = { prompt: begin, options: options.read() };
    const show = async () => {
      const stats = await llm.stats();
      drawFigures(stats);
      drawWork(stats, await llm.trace());
    };
    refresh = setInterval(() => void show().catch(() => undefined), REFRESH);
    for await (const piece of llm.generate(begin, { ...written.options, special: false, signal })) addToStory(piece);
    await show();
    noteRun(before, await llm.stats());
  } catch (error) {
    if (!isCancelled(error)) showNotice('form', error, 'Try again', () => void write());
  } finally {
    clearInterval(refresh);
    endStory();
    if (writing.signal === signal) writing = undefined;
    updateButtons();
  }
}

/** Says what is wrong with the beginning. */
function complain(title: string, text: string): void {
  prompt.setAttribute('aria-invalid', 'true');
  showNotice('form', { title, text });
}

function stop(): void {
  writing?.abort();
}

function updateButtons(): void {
  setOff(writeButton, refused || writing !== undefined);
  setOff(stopButton, writing === undefined);
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

function setUpBudget(stops: number, budget: number): void {
  slider.max = String(stops);
  slider.value = String(stopFor(budget));
  byId('scale-low', HTMLElement).textContent = format.budget(budgetAt(0));
  byId('scale-high', HTMLElement).textContent = format.budget(budgetAt(stops));
  showBudget();
}

function setUpWriting(): void {
  let rest: ReturnType<typeof setTimeout>;
  slider.addEventListener('input', () => {
    showBudget();
    clearTimeout(rest);
    rest = setTimeout(() => void open(), REST);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!isOff(writeButton)) void write();
  });
  prompt.addEventListener('input', () => prompt.removeAttribute('aria-invalid'));
  stopButton.addEventListener('click', stop);
  byId('modifier', HTMLElement).textContent = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘' : 'Ctrl';
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') stop();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
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

/** Opens another model, whose size is not known: a budget that is refused is followed by the next. */
function use(source: string | File): void {
  slot.source = source;
  const own = source !== MODEL;
  setUpBudget(own ? ALL : FEW, own ? chosenBudget() : Math.min(chosenBudget(), budgetAt(FEW)));
  void open({ climb: own });
}

async function share(): Promise<void> {
  const { source } = slot;
  if (typeof source !== 'string') {
    shareText.textContent = 'This story was written by a file of your own, which a link cannot hold.';
    return;
  }
  const what = written ?? { prompt: prompt.value, options: options.read() };
  const model = source === MODEL ? {} : { model: source };
  const link = linkTo(location.href, { ...what, budget: chosenBudget(), ...model });
  history.replaceState(null, '', link);
  const copied = await navigator.clipboard.writeText(link).then(
    () => true,
    () => false,
  );
  shareText.textContent =
    (copied ? 'Copied' : 'It is in the address bar now') +
    ': whoever opens it and presses Write gets this text, letter for letter, on any machine and in any browser.';
}

/** Takes over what the page's address says; whether it says something. */
function takeLink(): boolean {
  const link = readLink(location.hash);
  if (!link) return false;
  prompt.value = link.prompt ?? '';
  options.fill(link.options);
  if (link.model !== undefined) slot.source = link.model;
  setUpBudget(link.model === undefined ? FEW : ALL, link.budget ?? FIRST_BUDGET);
  shareText.textContent = 'From a link: Write gives the same text here as on every other machine.';
  return true;
}

const told = (place: Place) => (error: unknown) => showNotice(place, error);

onRemove(async () => {
  stop();
  opened = undefined;
  try {
    await slot.forget();
    clearPlan('Removed. The next story fetches the model again.');
  } catch (error) {
    clearPlan('');
    showNotice('file', error, 'Open it again', () => void open());
  }
});
setUpBudget(FEW, FIRST_BUDGET);
setUpWriting();
setUpOwn(MODEL, use, told('file'));
byId('share', HTMLButtonElement).addEventListener('click', () => void share());
addEventListener('hashchange', () => {
  if (takeLink()) void open();
});
takeLink();
void open();
keepOffline();
