// A model of the visitor's own, by file or address.

import { hideSecrets } from 'qsf';
import { modelAddress } from './address.js';
import { byId } from './dom.js';

const form = byId('own-form', HTMLFormElement);
const file = byId('own-file', HTMLInputElement);
const address = byId('own-address', HTMLInputElement);
const back = byId('own-back', HTMLButtonElement);
const name = byId('model-name', HTMLElement);
const honest = byId('honest', HTMLElement);

/** Calls `use` with the chosen model, and `refuse` with the fault of an address. */
export function setUpOwn(
  builtIn: string,
  use: (source: string | File) => void,
  refuse: (told: { title: string; text: string }) => void,
): void {
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? [];
    if (chosen) use(chosen);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const given = address.value.trim();
    const model = modelAddress(given);
    if (model !== undefined) {
      use(model);
    } else {
      const text = `${given === '' ? 'Nothing was given' : 'This is none'}; it begins with https:// and ends in .qsf.`;
      refuse({ title: 'This needs an address', text });
    }
  });
  back.addEventListener('click', () => {
    file.value = '';
    use(builtIn);
    address.focus();
  });
}

/** Shows which model is open, without the secret parts of its address, and the limits of the built-in one. */
export function showSource(source: string | File, builtIn: string): void {
  back.hidden = source === builtIn;
  honest.hidden = source !== builtIn;
  name.textContent =
    source === builtIn
      ? 'The built-in model: stories, 8 bits a weight.'
      : typeof source === 'string'
        ? hideSecrets(source)
        : source.name;
}
