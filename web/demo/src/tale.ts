// The mode of models without a chat template: a beginning, and the story that continues it.

import type { QSF } from 'qsf';
import { byId, isOff, make, setOff } from './dom.js';
import { hideEnding, showEnding, showWriting } from './ending.js';
import { showNotice } from './notice.js';
import type { OptionFields, Options } from './options.js';
import { tooLong } from './room.js';
import { showingWork, unlessAborted } from './stage.js';
import type { Stage } from './stage.js';
import { addToStory, beginStory, endStory, resumeStory } from './story.js';

const IDEAS = ['In the forest', 'The old king', '“Come in,” said'];

const form = byId('form', HTMLFormElement);
const prompt = byId('prompt', HTMLTextAreaElement);
const writeButton = byId('write', HTMLButtonElement);
const stopButton = byId('stop', HTMLButtonElement);

/** A story on the page: its beginning, its options and the number of its parts. */
export interface Tale {
  prompt: string;
  options: Options;
  parts: number;
}

export class TaleMode {
  readonly #stage: Stage;
  readonly #options: OptionFields;
  #written: Tale | undefined;

  constructor(stage: Stage, options: OptionFields) {
    this.#stage = stage;
    this.#options = options;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (!isOff(writeButton)) void this.#write();
    });
    prompt.addEventListener('input', () => prompt.removeAttribute('aria-invalid'));
    stopButton.addEventListener('click', () => stage.stop());
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

  /** The story on the page, or the one that would be written. */
  get tale(): Tale {
    return this.#written ?? { prompt: prompt.value, options: this.#options.read(), parts: 0 };
  }

  set beginning(text: string) {
    prompt.value = text;
  }

  update(cannotWrite: boolean, cannotStop: boolean): void {
    setOff(writeButton, cannotWrite);
    setOff(stopButton, cannotStop);
  }

  /** Writes a story from the beginning, once the model is open. */
  #write(): Promise<void> {
    const begin = prompt.value;
    if (begin.trim() === '') {
      complain('Nothing to begin with', 'Write a few words above: the story goes on from them.');
      return Promise.resolve();
    }
    prompt.removeAttribute('aria-invalid');
    const opening = this.#stage.model();
    return this.#whileWriting(
      () => this.#write(),
      async (signal) => {
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
        this.#written = { prompt: begin, options: this.#options.read(), parts: 0 };
        await this.#writePart(llm, begin, this.#written, signal);
      },
    );
  }

  /** Writes another part of the story, as long as the model that wrote it is open. */
  #goOn(llm: QSF, tale: Tale): Promise<void> {
    return this.#whileWriting(
      () => this.#goOn(llm, tale),
      (signal) => {
        resumeStory();
        return this.#writePart(llm, '', tale, signal);
      },
    );
  }

  #whileWriting(again: () => Promise<void>, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    return this.#stage.write('form', again, async (signal) => {
      try {
        await work(signal);
      } catch (error) {
        hideEnding();
        throw error;
      } finally {
        endStory();
      }
    });
  }

  /** Writes from `text`, or from the end of a story that has parts. Then shows the reason for the end. */
  async #writePart(llm: QSF, text: string, tale: Tale, signal: AbortSignal): Promise<void> {
    showWriting(() => this.#stage.stop());
    const goesOn = tale.parts++ > 0;
    const stats = await showingWork(llm, signal, async () => {
      const how = { ...tale.options, special: false, signal, continue: goesOn, addBos: !goesOn };
      for await (const piece of llm.generate(text, how)) addToStory(piece);
    });
    if (this.#stage.isOpen(llm)) showEnding(stats, () => void this.#goOn(llm, tale));
  }
}

/** Shows the fault of the beginning. */
function complain(title: string, text: string): void {
  prompt.setAttribute('aria-invalid', 'true');
  showNotice('form', { title, text });
}
