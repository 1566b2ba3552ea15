// One of the page's models: its row, its opening and its end.

import { QSF, QSFError } from 'qsf';
import type { SuggestedModel } from 'qsf';
import { suggestedSource } from '../address.js';
import { byId } from '../dom.js';
import { isCancelled } from '../cancelled.js';
import * as format from '../format.js';
import { hideNotice, showFailure, showNotice } from '../notice.js';
import { pick, titleOf } from '../picker.js';
import { inWords } from '../progress.js';
import { ModelSlot } from '../slot.js';

/** Bytes for a model of unknown size. A refused budget is followed by one of twice as many, up to the most. */
const UNKNOWN = 128 * 2 ** 20;
const MOST = 4032 * 2 ** 20;

export interface PlaceUse {
  /** The prefix of its elements' ids. */
  id: 'embedding' | 'reranker' | 'answering';
  kind: SuggestedModel['use'];
  title: string;
  /** The words of its row without a model. */
  none: string;
  builtIn?: string;
  /** Rejects if the model cannot do the work. */
  check(llm: QSF): Promise<void>;
  /** Called with the open model, and with undefined when there is none any more. */
  changed(llm: QSF | undefined): void;
}

export class ModelPlace {
  readonly #use: PlaceUse;
  readonly #name: HTMLElement;
  readonly #text: HTMLElement;
  readonly #meter: HTMLElement;
  readonly #choose: HTMLButtonElement;
  readonly #close: HTMLButtonElement;
  #slot: ModelSlot | undefined;
  #llm: QSF | undefined;
  #memory = 0;
  /** The number of the last choice, which replaces the ones before it. */
  #turn = 0;

  constructor(use: PlaceUse) {
    this.#use = use;
    this.#name = byId(`${use.id}-name`, HTMLElement);
    this.#text = byId(`${use.id}-text`, HTMLElement);
    this.#meter = byId(`${use.id}-meter`, HTMLElement);
    this.#choose = byId(`choose-${use.id}`, HTMLButtonElement);
    this.#close = byId(`close-${use.id}`, HTMLButtonElement);
    this.#choose.addEventListener('click', () => this.choose());
    this.#close.addEventListener('click', () => {
      void this.close();
      this.#choose.focus();
    });
  }

  /** The open model. */
  get llm(): QSF | undefined {
    return this.#llm;
  }

  get source(): string | File | undefined {
    return this.#slot?.source;
  }

  /** Bytes with which the open model was opened. */
  get memory(): number {
    return this.#memory;
  }

  get title(): string {
    return this.#slot ? titleOf(this.#slot.source, this.#use.builtIn) : '';
  }

  /** Opens the dialog of models. */
  choose(): void {
    const { title, kind, builtIn } = this.#use;
    pick({
      ...{ title, kind, builtIn },
      about: 'Built in, at once. It was made to write tales, so it finds less than the others.',
      current: () => this.source,
      use: (source) => void this.open(source),
      forget: () => this.#forget(),
      refuse: (fault) => showNotice('pick', fault),
    });
  }

  /** Opens a model in place of the current one. Shows why it did not open. */
  async open(source: string | File, memory?: number): Promise<void> {
    const turn = ++this.#turn;
    const isOld = () => turn !== this.#turn;
    const slot = (this.#slot ??= new ModelSlot(source));
    slot.source = source;
    this.#lose();
    hideNotice();
    this.#show('…', true);
    this.#report(inWords(this.title), 0);
    try {
      const llm = await this.#opened(slot, memory ?? suggestedSource(source)?.memory ?? UNKNOWN, isOld);
      await this.#use.check(llm);
      if (isOld()) return;
      this.#llm = llm;
      this.#show(`Open in ${format.budget(this.#memory)} of memory.`, true);
      this.#use.changed(llm);
    } catch (error) {
      if (isOld() || isCancelled(error)) return;
      await this.close();
      showFailure('models', error, () => void this.open(source, memory));
    }
  }

  /** Ends an opening, or the model. */
  async close(): Promise<void> {
    this.#turn++;
    const slot = this.#slot;
    this.#slot = undefined;
    this.#lose();
    this.#show(this.#use.none, false);
    await slot?.close();
  }

  async #opened(slot: ModelSlot, memory: number, isOld: () => boolean): Promise<QSF> {
    for (let bytes = memory; ; bytes = Math.min(2 * bytes, MOST)) {
      this.#memory = bytes;
      try {
        return await slot.open(bytes, (progress) => {
          if (isOld()) return;
          const { loaded, total } = progress;
          this.#report(inWords(this.title, progress), total > 0 ? loaded / total : 0);
        });
      } catch (error) {
        const isSmall = error instanceof QSFError && error.code === 'budget_too_small';
        if (!isSmall || bytes >= MOST || isOld()) throw error;
      }
    }
  }

  async #forget(): Promise<void> {
    const slot = this.#slot;
    this.#slot = undefined;
    this.#turn++;
    this.#lose();
    this.#show(this.#use.none, false);
    await slot?.forget();
  }

  #lose(): void {
    if (this.#llm === undefined) return;
    this.#llm = undefined;
    this.#use.changed(undefined);
  }

  #show(words: string, isThere: boolean): void {
    this.#name.textContent = isThere ? this.title : 'None';
    this.#text.textContent = words;
    this.#meter.hidden = true;
    this.#close.hidden = !isThere;
    this.#choose.textContent = isThere ? 'Change' : 'Choose';
  }

  #report(words: string, share: number): void {
    this.#text.textContent = words;
    const percent = Math.floor(100 * share);
    this.#meter.hidden = percent === 0 || percent === 100;
    this.#meter.setAttribute('aria-valuenow', String(percent));
    (this.#meter.firstElementChild as HTMLElement).style.width = `${percent}%`;
  }
}
