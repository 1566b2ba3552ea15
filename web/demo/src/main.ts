// The page: a prompt, a story streamed while it is written, a budget, and the engine's work with it.

import { QSFError } from 'qsf';
import type { QSF, Stats } from 'qsf';
import { ALL, FEW, budgetAt, stopFor } from './budget.js';
import { onRemove, showCache, showDownload } from './cache.js';
import { byId, isOff, make, setOff } from './dom.js';
import { drawFigures } from './figures.js';
import * as format from './format.js';
import { drawMap, drawStrip } from './map.js';
import { hideNotice, showFailure, showNotice } from './notice.js';
import type { Place } from './notice.js';
import { hideEnding, showEnding, showWriting } from './ending.js';
import { keepOffline } from './offline.js';
import { OptionFields } from './options.js';
import type { Options } from './options.js';
import { setUpOwn, showSource } from './own.js';
import { tooLong } from './room.js';
import { noteRun } from './runs.js';
import { linkTo, readLink } from './share.js';
import { ModelSlot } from './slot.js';
import { addToStory, beginStory, endStory, resumeStory } from './story.js';
import { beginWork, clearWork, drawWork } from './work.js';

const MODEL = new URL('models/stories-8bit.qsf', document.baseURI).href;

/** In bytes: less than the built-in model's weights, so that the first story is streamed. */
const FIRST_BUDGET = 4 * 1024 * 1024;

const IDEAS = ['In the forest', 'The old king', '“Come in,” said'];

/** Milliseconds between updates of the figures while a story is written. */
const REFRESH = 200;

/** Milliseconds that the slider must rest before the model is opened again. */
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

/** The model that is open or being opened. Resolves with undefined if it was refused or another choice replaced it. */
let opened: Promise<QSF | undefined> | undefined;
let isOpening = false;
let refused = false;
let writing: AbortController | undefined;
/** The prompt and options of the story on the page, and the number of its parts. */
let written: { prompt: string; options: Options; parts: number } | undefined;

const chosenBudget = (): number => budgetAt(slider.valueAsNumber);
const lastStop = (): number => Number(slider.max);

/** Opens the model with the chosen budget. With `climb`, a refused budget is followed by the next larger one. */
function open({ climb = false } = {}): Promise<QSF | undefined> {
  writing?.abort();
  hideNotice();
  hideEnding();
  refused = false;
  isOpening = true;
  updateButtons();
  const memory = chosenBudget();
  status.textContent = `Planning for ${format.budget(memory)} …`;
  showSource(slot.source, MODEL);
  const opening = slot
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
    })
    .finally(() => {
      if (opened !== opening) return;
      isOpening = false;
      updateButtons();
    });
  return (opened = opening);
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

/** Shows why the model did not open, and offers a remedy. */
function refuse(error: unknown, larger: boolean): void {
  refused = true;
  updateButtons();
  clearPlan('');
  const memory = tooSmall(error) || (error instanceof QSFError && error.code === 'out_of_memory');
  if (larger) {
    const climb = () => setBudget(slider.valueAsNumber + 1, { climb: true });
    showNotice('budget', error, 'Use the smallest that works', climb);
  } else {
    showFailure(memory ? 'budget' : 'file', error, () => void open());
  }
}

/** Writes a story from the prompt, once the model is open. */
function write(): Promise<void> {
  const begin = prompt.value;
  if (begin.trim() === '') {
    complain('Nothing to begin with', 'Write a few words above: the story goes on from them.');
    return Promise.resolve();
  }
  const opening = opened ?? open();
  prompt.removeAttribute('aria-invalid');
  return whileWriting(write, async (signal) => {
    const llm = await unlessAborted(opening, signal);
    if (llm === undefined) return;
    const { plan } = await llm.stats();
    const { length } = await llm.tokenize(begin, { special: false });
    const wrong = tooLong(length, plan);
    if (wrong !== undefined) {
      complain('This beginning is too long', wrong);
      return;
    }
    beginStory(begin);
    written = { prompt: begin, options: options.read(), parts: 0 };
    await writePart(llm, begin, written, signal);
  });
}

/** Writes another part of the story, as long as the model that wrote it is open. */
function goOn(llm: QSF, story: NonNullable<typeof written>): Promise<void> {
  if (writing) return Promise.resolve();
  const again = () => goOn(llm, story);
  return whileWriting(again, (signal) => {
    resumeStory();
    return writePart(llm, '', story, signal);
  });
}

/** Runs `work`, which writes. `again` repeats it after a failure that may pass. */
async function whileWriting(again: () => Promise<void>, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { signal } = (writing = new AbortController());
  updateButtons();
  hideNotice();
  try {
    await work(signal);
  } catch (error) {
    hideEnding();
    if (!signal.aborted && !isCancelled(error)) showFailure('form', error, () => void again());
  } finally {
    endStory();
    if (writing.signal === signal) writing = undefined;
    updateButtons();
  }
}

/** Writes from `text`, or from the end of a story that has parts. Then shows the reason for the end. */
async function writePart(
  llm: QSF,
  text: string,
  story: NonNullable<typeof written>,
  signal: AbortSignal,
): Promise<void> {
  const model = opened;
  showWriting(stop);
  const before = await llm.stats();
  beginWork(before);
  const show = async () => {
    const stats = await llm.stats();
    drawFigures(stats);
    drawWork(stats, await llm.trace());
    return stats;
  };
  const refresh = setInterval(() => void show().catch(() => undefined), REFRESH);
  const goesOn = story.parts++ > 0;
  try {
    const how = { ...story.options, special: false, signal, continue: goesOn, addBos: !goesOn };
    for await (const piece of llm.generate(text, how)) addToStory(piece);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(refresh);
  }
  const stats = await show();
  if (!signal.aborted) noteRun(before, stats);
  if (opened === model) showEnding(stats, () => void goOn(llm, story));
}

/** Shows the fault of the beginning. */
function complain(title: string, text: string): void {
  prompt.setAttribute('aria-invalid', 'true');
  showNotice('form', { title, text });
}

/** Stops writing, opening, or both. */
function stop(): void {
  writing?.abort();
  if (!isOpening) return;
  slot.cancel();
  isOpening = false;
  opened = undefined;
  clearPlan('Stopped. Write opens the model.');
  updateButtons();
}

function updateButtons(): void {
  setOff(writeButton, refused || writing !== undefined);
  setOff(stopButton, writing === undefined && !isOpening);
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

/** Opens another model. Its size is unknown, so a refused budget is followed by the next larger one. */
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
  const what = written ?? { prompt: prompt.value, options: options.read(), parts: 0 };
  const text = what.parts > 1 ? 'this text up to where you went on' : 'this text';
  const secrets = new URL(source).search === '' ? '' : ' It holds all of the model’s address, keys in it too.';
  const model = source === MODEL ? {} : { model: source };
  const link = linkTo(location.href, { ...what, budget: chosenBudget(), ...model });
  history.replaceState(null, '', link);
  const copied = await navigator.clipboard.writeText(link).then(
    () => true,
    () => false,
  );
  shareText.textContent =
    (copied ? 'Copied' : 'It is in the address bar now') +
    `: whoever opens it and presses Write gets ${text}, letter for letter, on any machine and in any browser.${secrets}`;
}

/** Takes the settings in the page's address. Returns whether it has any. */
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
  hideEnding();
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
