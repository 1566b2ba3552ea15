// The choice of a model: suggested ones of the Hub, one of the visitor's own, and those that this browser keeps.

import { QSF, hideSecrets } from 'qsf';
import type { CacheEntry, SuggestedModel } from 'qsf';
import { hubName, lastName, modelAddress, suggestedSource } from './address.js';
import { byId, make } from './dom.js';
import * as format from './format.js';
import { AT_LIMIT } from './kept.js';
import { expectedSpeed } from './rate.js';
import { openSheet, setUpSheet } from './sheet.js';
import { nextTask, sliced } from './slices.js';

const sheet = byId('picker', HTMLDialogElement);
const heading = byId('picker-title', HTMLElement);
const suggested = byId('suggested', HTMLElement);
const kept = byId('kept', HTMLElement);
const keptText = byId('kept-text', HTMLElement);
const file = byId('own-file', HTMLInputElement);
const address = byId('own-address', HTMLInputElement);

export interface Picking {
  title: string;
  /** The models that are suggested. */
  kind: SuggestedModel['use'];
  /** The address of the page's own model, if it can be chosen, and a text about it. */
  builtIn: string | undefined;
  about: string;
  current(): string | File | undefined;
  use(source: string | File, suggested?: SuggestedModel): void;
  /** Closes the current model and removes its cached bytes. */
  forget(): Promise<void>;
  /** Shows the fault of an address, or an error. */
  refuse(fault: unknown): void;
}

/** The choice that the dialog is open for. */
let picking: Picking;

/** Returns the name of a model for readers, without the secret parts of its address. */
export function titleOf(source: string | File, builtIn: string | undefined): string {
  if (source === builtIn) return 'Stories';
  if (typeof source !== 'string') return source.name;
  return suggestedSource(source)?.title ?? lastName(hideSecrets(source));
}

/** Closes the dialog and opens a model. The click, the dialog's end and the opening have a task each. */
function choose(source: string | File): void {
  const { use } = picking;
  void nextTask().then(async () => {
    sheet.close();
    await nextTask();
    use(source, suggestedSource(source));
  });
}

/** Opens the dialog. Later tasks draw its lists. */
export function pick(next: Picking): void {
  if (picking !== next) suggested.replaceChildren();
  picking = next;
  heading.textContent = next.title;
  openSheet(sheet);
  void nextTask().then(async () => {
    if (suggested.childElementCount === 0) await showSuggested(new Set());
    await showKept();
  });
}

/** Sets up the dialog. */
export function setUpPicker(): void {
  setUpSheet(sheet);
  byId('kept-limit', HTMLElement).textContent = AT_LIMIT;
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? [];
    file.value = '';
    if (chosen) choose(chosen);
  });
  byId('own-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    const given = address.value.trim();
    const model = modelAddress(given);
    if (model !== undefined) {
      choose(model);
    } else {
      const fault = given === '' ? 'Nothing was given' : 'This is none';
      picking.refuse({
        title: 'This needs a name or an address',
        text: `${fault}; write owner/name or owner/name/file.gguf, or an address that begins with https://.`,
      });
    }
  });
}

/** Shows the suggested models. `here` are the sources of those that the browser keeps whole. */
const showSuggested = (here: Set<string>): Promise<void> => sliced(suggestedRows(here));

/** Puts the rows of the suggested models into the list, one in each step, until the dialog is open for something else. */
function* suggestedRows(here: Set<string>): Generator<void, void> {
  const shownFor = picking;
  const { kind, builtIn, about, current } = picking;
  const isOpen = (source: string) => hubName(String(current())) === source;
  let place = 0;
  const put = (made: HTMLElement) => {
    const there = suggested.children[place++];
    if (!there) suggested.append(made);
    else if (!there.isEqualNode(made)) there.replaceWith(made);
  };
  if (builtIn !== undefined) put(storiesRow(builtIn, about, current() === builtIn));
  for (const model of QSF.models.filter(({ use }) => use === kind)) {
    const speed = expectedSpeed(model.weightBytes);
    const facts = [
      `${format.weights(model.parameters)} weights`,
      here.has(model.source) ? 'kept here' : format.fileSize(model.bytes),
      `${Math.round(model.memory / 2 ** 20)} MiB of memory`,
      ...(speed === undefined ? [] : [`about ${format.rate(speed)} tokens/s here`]),
      model.licence,
    ];
    const open = openButton(model.title, isOpen(model.source), () => choose(model.source));
    put(row(model.title, model.about, facts, open));
    yield;
    if (picking !== shownFor) return;
  }
}

const storiesRow = (source: string, about: string, isOpen: boolean) =>
  row(
    'Stories',
    about,
    ['4.5 M weights', '4.9 MB', 'MIT'],
    openButton('Stories', isOpen, () => choose(source)),
  );

async function showKept(): Promise<void> {
  const { builtIn, current, forget, refuse } = picking;
  const [entries, usage] = await Promise.all([QSF.cache.list(), QSF.cache.usage()]);
  const isCurrent = (url: string) =>
    typeof current() === 'string' && hubName(hideSecrets(current() as string)) === hubName(url);
  const remove = async (entry: CacheEntry) => {
    try {
      if (isCurrent(entry.url)) await forget();
      else await QSF.cache.remove(entry.url);
    } catch (error) {
      refuse(error);
    }
    await showKept();
    address.focus({ preventScroll: true });
  };
  const whole = entries.filter(({ complete }) => complete).map(({ url }) => hubName(url));
  await showSuggested(new Set(whole));
  keptText.textContent =
    entries.length === 0
      ? 'Nothing yet.'
      : `${format.fileSize(usage.bytes)} in all${usage.persisted ? '' : '; the browser may remove them when the disk is full'}.`;
  kept.replaceChildren(
    ...entries.map((entry) => {
      const title = titleOf(entry.url, builtIn);
      const part = entry.complete ? '' : ` of ${format.fileSize(entry.total)}`;
      const button = make('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${title}` }, 'Remove');
      button.addEventListener('click', () => void remove(entry));
      const canOpen = !entry.url.includes('***');
      const open = openButton(title, isCurrent(entry.url), () =>
        choose(entry.url === builtIn ? builtIn : hubName(entry.url)),
      );
      return row(title, '', [`${format.fileSize(entry.bytes)}${part}`], button, ...(canOpen ? [open] : []));
    }),
  );
}

function openButton(title: string, isOpen: boolean, open: () => void): HTMLElement {
  if (isOpen) return make('span', { class: 'small now' }, 'Open now');
  const button = make('button', { type: 'button', 'aria-label': `Open ${title}` }, 'Open');
  button.addEventListener('click', open);
  return button;
}

const row = (title: string, about: string, facts: string[], ...actions: HTMLElement[]): HTMLElement =>
  make(
    'li',
    {},
    make(
      'div',
      { class: 'row-text' },
      make('strong', {}, title),
      ...(about === '' ? [] : [make('span', {}, about)]),
      make('small', {}, facts.join(' · ')),
    ),
    make('div', { class: 'row-actions' }, ...actions),
  );
