// The fields for the options of a generation, made from one table. Values are checked when they are read.

import { byId, make } from './dom.js';
import { nextTask, sliced } from './slices.js';

interface Field {
  id: 'temperature' | 'maxTokens' | 'topK' | 'topP';
  label: string;
  hint: string;
  min: number;
  max: number;
  step: number;
  start: number;
}

/** The length of a story and of an answer in tokens: at most, and at first. */
const LENGTHS = { story: { max: 480, start: 200 }, chat: { max: 8192, start: 1024 } } as const;

const FIELDS: readonly Field[] = [
  {
    id: 'temperature',
    label: 'Temperature',
    hint: '0 always takes the likeliest word',
    min: 0,
    max: 2,
    step: 0.05,
    start: 0.8,
  },
  {
    id: 'maxTokens',
    label: 'Length',
    hint: 'tokens at most; a token is about ¾ of a word',
    min: 1,
    max: LENGTHS.story.max,
    step: 1,
    start: LENGTHS.story.start,
  },
  {
    id: 'topK',
    label: 'Top-k',
    hint: 'choose among the k likeliest; 0 for all',
    min: 0,
    max: 2048,
    step: 1,
    start: 40,
  },
  {
    id: 'topP',
    label: 'Top-p',
    hint: 'choose among the likeliest that make up p',
    min: 0.05,
    max: 1,
    step: 0.05,
    start: 0.95,
  },
];

/** The options of generate() that this page sets. */
export type Options = Record<Field['id'], number> & { seed: number };

const SEED_MAX = 0xffff_ffff;

export class OptionFields {
  readonly #fresh = make('input', { type: 'checkbox', id: 'fresh', checked: '' });
  /** Makes one field a step: a browser's first field for numbers takes longer than the rest of the page's script. */
  readonly #steps: Generator<void>;

  constructor(into: HTMLElement) {
    this.#steps = this.#make(into);
    void nextTask().then(() => sliced(this.#steps));
  }

  *#make(into: HTMLElement): Generator<void> {
    for (const f of FIELDS) {
      into.append(
        row(f.id, f.label, f.hint, {
          type: 'number',
          inputmode: 'decimal',
          min: String(f.min),
          max: String(f.max),
          step: String(f.step),
          value: String(f.start),
        }),
      );
      yield;
    }
    into.append(
      row('seed', 'Seed', 'the same seed writes the same story', {
        type: 'number',
        inputmode: 'numeric',
        min: '0',
        max: String(SEED_MAX),
        step: '1',
        value: '1',
      }),
      make('label', { class: 'check' }, this.#fresh, ' A new seed each time'),
    );
    seed().addEventListener('input', () => (this.#fresh.checked = false));
  }

  /** Makes the fields that are left. */
  #finish(): void {
    while (this.#steps.next().done !== true);
  }

  /** Sets the length for stories or for answers, when that changes. */
  suit(mode: keyof typeof LENGTHS): void {
    this.#finish();
    const { max, start } = LENGTHS[mode];
    const length = byId('maxTokens', HTMLInputElement);
    if (length.max === String(max)) return;
    length.max = String(max);
    length.value = String(start);
  }

  /** Takes options from a link, and moves each into its range. A seed is used for the next story. */
  fill(options: Partial<Options>): void {
    this.#finish();
    for (const { id, start } of FIELDS) {
      const input = byId(id, HTMLInputElement);
      if (options[id] !== undefined) input.value = String(options[id]);
      number(input, start);
    }
    if (options.seed === undefined) return;
    seed().value = String(Math.round(options.seed));
    number(seed(), 1);
    this.#fresh.checked = false;
  }

  /** Returns the options for the next story. Draws and shows a new seed if the visitor wants one for each story. */
  read(): Options {
    this.#finish();
    if (this.#fresh.checked) seed().value = String(crypto.getRandomValues(new Uint32Array(1))[0]);
    const values = Object.fromEntries(FIELDS.map((f) => [f.id, number(byId(f.id, HTMLInputElement), f.start)]));
    return { ...(values as Record<Field['id'], number>), seed: Math.round(number(seed(), 1)) };
  }
}

const seed = (): HTMLInputElement => byId('seed', HTMLInputElement);

function row(id: string, label: string, hint: string, attributes: Record<string, string>): HTMLElement {
  return make(
    'div',
    { class: 'field' },
    make('label', { for: id }, label),
    make('input', { id, 'aria-describedby': `${id}-hint`, ...attributes }),
    make('small', { id: `${id}-hint` }, hint),
  );
}

/** Returns the field's number, moved into its range, and shows it. */
function number(input: HTMLInputElement, otherwise: number): number {
  const raw = input.value.trim() === '' ? Number.NaN : Number(input.value);
  const value = Math.min(Number(input.max), Math.max(Number(input.min), Number.isFinite(raw) ? raw : otherwise));
  input.value = String(value);
  return value;
}
