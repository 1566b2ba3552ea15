// A model of the visitor's own, by file or address.

import { byId } from './dom.js';

const form = byId('own-form', HTMLFormElement);
const file = byId('own-file', HTMLInputElement);
const address = byId('own-address', HTMLInputElement);
const back = byId('own-back', HTMLButtonElement);
const name = byId('model-name', HTMLElement);

/** Calls `use` with what is chosen, and `refuse` with what is wrong with an address. */
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
    const url = URL.canParse(given) ? new URL(given) : undefined;
    if (url && /^https?:$/.test(url.protocol)) {
      use(url.href);
    } else {
      const text = `${given === '' ? 'Nothing was given' : `“${given}” is none`}; it begins with https:// and ends in .qsf.`;
      refuse({ title: 'This needs an address', text });
    }
  });
  back.addEventListener('click', () => {
    file.value = '';
    use(builtIn);
    address.focus();
  });
}

/** Says which model is open. */
export function showSource(source: string | File, builtIn: string): void {
  back.hidden = source === builtIn;
  name.textContent =
    source === builtIn
      ? 'The built-in model: stories, 8 bits a weight.'
      : typeof source === 'string'
        ? source
        : source.name;
}
