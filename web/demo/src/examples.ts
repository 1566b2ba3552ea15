// The page of examples. Each example is a file, which the page shows and runs unchanged.

import * as abort from './examples/abort.js';
import abortText from './examples/abort.ts?raw';
import * as budget from './examples/budget.js';
import budgetText from './examples/budget.ts?raw';
import * as cache from './examples/cache.js';
import cacheText from './examples/cache.ts?raw';
import * as goOn from './examples/continue.js';
import goOnText from './examples/continue.ts?raw';
import * as embed from './examples/embed.js';
import embedText from './examples/embed.ts?raw';
import * as errors from './examples/errors.js';
import errorsText from './examples/errors.ts?raw';
import * as seed from './examples/seed.js';
import seedText from './examples/seed.ts?raw';
import * as stop from './examples/stop.js';
import stopText from './examples/stop.ts?raw';
import * as text from './examples/text.js';
import textText from './examples/text.ts?raw';
import { byId, isOff, make, setOff } from './dom.js';
import { keepOffline } from './offline.js';

const MODEL = new URL('models/stories-8bit.qsf', document.baseURI).href;

interface Example {
  title: string;
  words: string;
  code: string;
  run(model: string, print: (text: string) => void): Promise<void>;
}

const EXAMPLES: readonly Example[] = [
  { title: 'Text, piece by piece', words: 'A model at an address, in 16 MiB.', code: textText, ...text },
  { title: 'Budgets', words: 'What a budget means for the same model.', code: budgetText, ...budget },
  {
    title: 'The same bits',
    words: 'A seed decides every bit of the logits, here and elsewhere.',
    code: seedText,
    ...seed,
  },
  { title: 'Where it stops', words: 'Stop strings, and how it went.', code: stopText, ...stop },
  { title: 'Going on', words: 'Appending to what is in the cache of keys and values.', code: goOnText, ...goOn },
  { title: 'Giving up', words: 'A signal ends the computation at once.', code: abortText, ...abort },
  { title: 'Embeddings', words: 'Vectors of texts, and how alike they are.', code: embedText, ...embed },
  { title: 'Errors', words: 'Each has a code and a sentence that says what would do.', code: errorsText, ...errors },
  { title: 'What is kept', words: 'The cache, its limit and its size.', code: cacheText, ...cache },
];

function show({ title, words, code, run }: Example, i: number): HTMLElement {
  const id = `example-${String(i)}`;
  const button = make('button', { type: 'button', class: 'primary', 'aria-describedby': id }, 'Run');
  const out = make('pre', { class: 'out', role: 'log', 'aria-label': `Output of ${title}`, tabindex: '0' });
  button.addEventListener('click', () => {
    if (isOff(button)) return;
    setOff(button, true);
    out.dataset['state'] = 'running';
    out.textContent = '';
    run(MODEL, (piece) => out.append(piece))
      .then(() => 'done')
      .catch((error: unknown) => {
        out.append(`\n${String(error)}`);
        return 'failed';
      })
      .then((state) => {
        out.dataset['state'] = state;
        setOff(button, false);
      }, console.error);
  });
  return make(
    'section',
    { class: 'card example', 'aria-labelledby': id },
    make('h2', { id }, title),
    make('p', { class: 'small' }, words),
    make('pre', { tabindex: '0', 'aria-label': `Code of ${title}` }, make('code', {}, code.trim())),
    button,
    out,
  );
}

byId('examples', HTMLElement).append(...EXAMPLES.map(show));
keepOffline();
