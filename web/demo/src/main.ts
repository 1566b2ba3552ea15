// The page: a model with a budget, the story or the conversation that it writes, and the engine's work with it.

import { QSF, QSFError, hideSecrets } from 'qsf';
import type { Progress, Stats, SuggestedModel } from 'qsf';
import { ALL, FEW, budgetAt, stopFor } from './budget.js';
import { isCopied } from './buttons.js';
import { onRemove, showCache, showDownload } from './cache.js';
import { isCancelled } from './cancelled.js';
import type { ChatMode } from './chat.js';
import { consequences } from './consequences.js';
import { byId, ignoreStrayClicks } from './dom.js';
import { hideEnding } from './ending.js';
import { drawFigures } from './figures.js';
import * as format from './format.js';
import { checkLast, hideLast, noteLast, onLast } from './last.js';
import { asks, dropQuestion, isFramedElsewhere, setUpLinked } from './linked.js';
import { drawMap, drawStrip } from './map.js';
import { hideNotice, showFailure, showNotice } from './notice.js';
import type { Last } from './noted.js';
import { keepOffline } from './offline.js';
import { hideOpening, showOpening } from './opening.js';
import { OptionFields } from './options.js';
import { pick, setUpPicker, titleOf } from './picker.js';
import type { Picking } from './picker.js';
import { linkTo, readLink } from './share.js';
import type { Link } from './share.js';
import { nextTask } from './slices.js';
import { ModelSlot } from './slot.js';
import type { Stage } from './stage.js';
import { TaleMode } from './tale.js';
import { clearWork, drawWork } from './work.js';

const MODEL = new URL('models/stories-8bit.qsf', document.baseURI).href;

/** In bytes: less than the built-in model's weights, so that the first story is streamed. */
const FIRST_BUDGET = 4 * 1024 * 1024;

/** In bytes: the first budget of a model of unknown size. A refused budget is followed by the next larger one. */
const OWN_BUDGET = 256 * 1024 * 1024;

/** Milliseconds that the slider must rest before the model is opened again. */
const REST = 250;

/** The notice in place of the question about a link's model. */
const FRAMED = {
  title: 'This link’s model was not opened',
  text: 'A page of another site shows this page in a frame. Open the link in a window of its own.',
};

const slider = byId('budget', HTMLInputElement);
const status = byId('status', HTMLElement);
const side = byId('side', HTMLElement);
const fold = byId('fold', HTMLButtonElement);
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
/** Whether an opening has begun since the page was loaded. */
let hasBegun = false;
let refused = false;
/** The consequences of the last opening's plan, in sentences. */
let meaning = '';
let writing: AbortController | undefined;
/** Whether the model that is being opened goes on with the last conversation. */
let goesOn = false;
/** The model that was open before another choice, with its budget in bytes. */
let before: { source: string | File; memory: number } | undefined;

const stage: Stage = {
  model: () => opened ?? open(),
  isOpen: (llm) => slot.llm === llm,
  stop,
  async write(place, again, work) {
    if (writing) return;
    const { signal } = (writing = new AbortController());
    updateButtons();
    hideNotice();
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted && !isCancelled(error)) showFailure(place, error, () => void again());
    } finally {
      writing = undefined;
      updateButtons();
    }
  },
};
const tale = new TaleMode(stage, options);
/** Loaded for the first model with a chat template. */
let chat: ChatMode | undefined;

const chosenBudget = (): number => budgetAt(slider.valueAsNumber);
const planning = (): string => `Planning for ${format.budget(chosenBudget())} …`;
const lastStop = (): number => Number(slider.max);

/** Opens the model with the chosen budget. With `climb`, a refused budget is followed by the next larger one. */
function open({ climb = false } = {}): Promise<QSF | undefined> {
  writing?.abort();
  hideNotice();
  hideEnding();
  refused = false;
  isOpening = hasBegun = true;
  updateButtons();
  const memory = chosenBudget();
  const { source } = slot;
  status.textContent = planning();
  showSource();
  const opening = slot
    .open(memory, (progress) => {
      if (opened === opening) report(progress);
    })
    .then(async (llm) => {
      const stats = await llm.stats();
      drawPlan(stats);
      drawWork(stats, await llm.trace());
      await chooseMode(llm);
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
      hideOpening();
      updateButtons();
    });
  opened = opening;
  if (source !== MODEL) showOpening(titleOf(source, MODEL));
  return opening;
}

function report(progress: Progress): void {
  if (progress.plan) meaning = consequences(progress.plan, progress.expected);
  // Later reports have the same plan, and a screen reader says each change.
  if (progress.phase === 'plan') status.textContent = `${planning()} ${meaning}`;
  if (progress.phase === 'download') showDownload(progress);
  if (progress.phase === 'ready') hideOpening();
  else if (slot.source !== MODEL) showOpening(titleOf(slot.source, MODEL), progress);
}

/** Shows the mode of the model that was opened: a conversation if it has a chat template. */
async function chooseMode(llm: QSF): Promise<void> {
  const { chatTemplate } = await llm.info();
  const chats = chatTemplate !== undefined;
  if (chats) {
    // On a slow phone each of these steps is a task of its own. The renderer of Markdown is half of the chat's code.
    await import('./markdown.js');
    await nextTask();
    const { ChatMode } = await import('./chat.js');
    await nextTask();
    chat ??= new ChatMode(stage, options);
    await nextTask();
    if (slot.llm !== llm) return;
    chat.open(llm, titleOf(slot.source, MODEL));
    noteLast(slot.source, chosenBudget());
    if (goesOn) await chat.goOn();
  }
  goesOn = false;
  showMode(chats);
}

function showMode(chats: boolean): void {
  if (chats) hideLast();
  for (const id of ['form', 'story-card']) byId(id, HTMLElement).hidden = chats;
  byId('intro', HTMLElement).classList.toggle('visually-hidden', chats);
  byId('chat', HTMLElement).hidden = !chats;
  byId(chats ? 'chat-options' : 'form', HTMLElement).append(byId('options', HTMLElement));
  document.body.dataset['mode'] = chats ? 'chat' : 'story';
  options.suit(chats ? 'chat' : 'story');
}

function showSource(): void {
  const { source } = slot;
  byId('model-title', HTMLElement).textContent = titleOf(source, MODEL);
  byId('honest', HTMLElement).hidden = source !== MODEL;
  byId('model-name', HTMLElement).textContent =
    source === MODEL
      ? 'The built-in model: stories, 8 bits a weight.'
      : typeof source === 'string'
        ? hideSecrets(source)
        : source.name;
}

function drawPlan(stats: Stats): void {
  side.classList.remove('is-empty');
  drawMap(bar, map, stats);
  drawStrip(strip, stats);
  drawFigures(stats);
  status.textContent = `${meaning} Room for ${stats.plan.maxSeqLen} tokens.`;
  void showCache(slot.source, stats.model.bytes);
}

function clearPlan(words: string): void {
  for (const drawn of [bar, map, strip]) drawn.replaceChildren();
  side.classList.add('is-empty');
  clearWork('Nothing is open.');
  hideOpening();
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
  } else if (before && before.source !== slot.source && !(error instanceof QSFError && error.mayPass)) {
    const { source, memory } = before;
    showNotice('file', error, `Back to ${titleOf(source, MODEL)}`, () => use(source, { memory }));
  } else {
    showFailure(memory ? 'budget' : 'file', error, () => void open());
  }
}

/** Stops writing, opening, or both. */
function stop(): void {
  writing?.abort();
  if (!isOpening) return;
  slot.cancel();
  isOpening = false;
  opened = undefined;
  clearPlan('Stopped. The next text opens the model.');
  updateButtons();
}

function updateButtons(): void {
  const [cannotWrite, cannotStop] = [refused || writing !== undefined, writing === undefined && !isOpening];
  tale.update(cannotWrite, cannotStop);
  chat?.update(refused, writing !== undefined);
}

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

function setUpControls(): void {
  ignoreStrayClicks();
  let rest: ReturnType<typeof setTimeout>;
  slider.addEventListener('input', () => {
    showBudget();
    clearTimeout(rest);
    rest = setTimeout(() => void open(), REST);
  });
  byId('modifier', HTMLElement).textContent = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘' : 'Ctrl';
  byId('opening-stop', HTMLButtonElement).addEventListener('click', stop);
  document.addEventListener('keydown', (event) => {
    // An input method has keys of its own.
    if (event.isComposing || document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') stop();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      byId(document.body.dataset['mode'] === 'chat' ? 'composer' : 'form', HTMLFormElement).requestSubmit();
    }
  });
  fold.addEventListener('click', () => {
    const isShown = side.classList.toggle('is-open');
    fold.setAttribute('aria-expanded', String(isShown));
  });
}

/**
 * Opens another model. A suggested one gets the memory in which its weights stay. Of others the size is unknown, so that
 * a refused budget is followed by the next larger one.
 */
function use(source: string | File, suggested?: Pick<SuggestedModel, 'memory'>): void {
  if (slot.llm) before = { source: slot.source, memory: chosenBudget() };
  slot.source = source;
  goesOn = false;
  hideLast();
  if (source === MODEL) setUpBudget(FEW, Math.min(chosenBudget(), budgetAt(FEW)));
  else setUpBudget(ALL, suggested?.memory ?? Math.max(chosenBudget(), OWN_BUDGET));
  dropLink();
  void open({ climb: source !== MODEL });
}

/** Opens the model of the last conversation with its budget, and goes on with that conversation. */
function goOn({ source, memory }: Last): void {
  use(source, { memory });
  goesOn = true;
}

async function share(): Promise<void> {
  const { source } = slot;
  if (typeof source !== 'string') {
    shareText.textContent = 'This story was written by a file of your own, which a link cannot hold.';
    return;
  }
  const what = tale.tale;
  const text = what.parts > 1 ? 'this text up to where you went on' : 'this text';
  const secrets = new URL(source).search === '' ? '' : ' It holds all of the model’s address, keys in it too.';
  const model = source === MODEL ? {} : { model: source };
  const link = linkTo(location.href, { ...what, budget: chosenBudget(), ...model });
  history.replaceState(null, '', link);
  const copied = await isCopied(link);
  shareText.textContent =
    (copied ? 'Copied' : 'It is in the address bar now') +
    `: whoever opens it and presses Write gets ${text}, letter for letter, on any machine and in any browser.${secrets}`;
}

/** Takes the settings of a link. */
function take(link: Link): void {
  tale.beginning = link.prompt;
  options.fill(link.options);
  slot.source = link.model ?? MODEL;
  setUpBudget(slot.source === MODEL ? FEW : ALL, budgetOf(link));
  shareText.textContent = 'From a link: Write gives the same text here as on every other machine.';
}

const budgetOf = (link: Link): number => link.budget ?? FIRST_BUDGET;

/**
 * Opens the model with the settings in the page's address, if it has any and mayTake() allows it. The first call opens
 * the page's own model if it opens no other.
 */
async function follow(): Promise<void> {
  dropQuestion();
  const link = readLink(location.hash);
  const allowed = link && (await mayTake(link));
  if (link && allowed === undefined) return;
  if (link && allowed) take(link);
  if (allowed || !hasBegun) void open();
  if (link && !allowed && isFramedElsewhere()) showNotice('file', FRAMED);
}

/**
 * Whether the settings of a link may be used. The visitor decides about a model that is not the page's own, except if a
 * page of another origin frames this one. Undefined if a newer address ends the question.
 */
async function mayTake(link: Link): Promise<boolean | undefined> {
  const { model } = link;
  if (model === undefined || model === MODEL) return true;
  const agreed = !isFramedElsewhere() && (await asks(model, budgetAt(stopFor(budgetOf(link)))));
  if (agreed === false) dropLink();
  return agreed;
}

/** Removes the settings from the page's address. */
function dropLink(): void {
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
}

/** Closes the model and removes the cached bytes of its file. Rejects if another tab has it open. */
async function forget(): Promise<void> {
  stop();
  opened = undefined;
  hideEnding();
  try {
    await slot.forget();
    clearPlan('Removed. The next text fetches the model again.');
  } catch (error) {
    clearPlan('Closed. The next text opens the model.');
    throw error;
  }
}

const picking: Picking = {
  ...{ title: 'Choose a model', kind: 'chat', builtIn: MODEL },
  about: 'Built in: continues old children’s tales, at once.',
  ...{ current: () => slot.source, use, forget, refuse: (fault) => showNotice('pick', fault) },
};

onRemove(() => forget().catch((error) => showNotice('file', error, 'Open it again', () => void open())));
setUpBudget(FEW, FIRST_BUDGET);
setUpControls();
setUpPicker();
setUpLinked();
for (const id of ['model-button', 'honest-more'])
  byId(id, HTMLButtonElement).addEventListener('click', () => pick(picking));
onLast(goOn);
byId('share', HTMLButtonElement).addEventListener('click', () => void share());
addEventListener('hashchange', () => void follow());
// The page is there first.
void nextTask().then(async () => {
  const opening = follow();
  await nextTask();
  keepOffline();
  await opening;
  await checkLast();
});
