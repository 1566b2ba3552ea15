// The visitor's files on the page: added, listed, made into vectors, removed.

import { smallButton } from '../buttons.js';
import { isCancelled } from '../cancelled.js';
import { byId, make, putAt } from '../dom.js';
import * as format from '../format.js';
import { hideNotice, showNotice } from '../notice.js';
import type { Embedder } from './embedder.js';
import type { Library } from './library.js';
import { readFile } from './read-file.js';
import type { StoredFile } from './store.js';

const input = byId('add-files', HTMLInputElement);
const drop = byId('drop', HTMLElement);
const status = byId('files-status', HTMLElement);
const rows = byId('documents', HTMLElement);
const wants = byId('files-choose', HTMLButtonElement);

/** Words about each file under way, by its id. */
const working = new Map<string, string>();

export class Files {
  readonly #library: Library;
  #embedder: Embedder | undefined;
  #abort = new AbortController();
  /** The file whose vectors are being made. */
  #current: StoredFile | undefined;

  readonly #rows = new WeakMap<StoredFile, HTMLElement>();

  /** `choose` lets the visitor choose a model. */
  constructor(library: Library, choose: () => void) {
    this.#library = library;
    wants.addEventListener('click', choose);
    input.addEventListener('change', () => {
      const files = [...(input.files ?? [])];
      input.value = '';
      void this.add(files);
    });
    for (const type of ['dragenter', 'dragover'])
      document.addEventListener(type, (event) => {
        if (!(event as DragEvent).dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        drop.classList.add('is-over');
      });
    document.addEventListener('dragleave', ({ relatedTarget }) => {
      if (relatedTarget === null) drop.classList.remove('is-over');
    });
    document.addEventListener('drop', (event) => {
      drop.classList.remove('is-over');
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      void this.add(files);
    });
    this.show();
  }

  /** Adds files, and shows the first one that cannot be read. */
  async add(files: readonly File[]): Promise<void> {
    hideNotice();
    const faults: string[] = [];
    for (const file of files) {
      try {
        await this.#library.add(file.name, file.size, await readFile(file));
      } catch (error) {
        faults.push(error instanceof Error ? error.message : String(error));
      }
    }
    // It has been replaced by one of the same name.
    if (this.#current && !this.#library.files.includes(this.#current)) this.#abort.abort();
    this.show();
    if (faults.length > 0) {
      const title = faults.length === 1 ? 'This file was not added' : `${faults.length} files were not added`;
      showNotice('library', { title, text: `${faults.join('. ')}.` });
    }
    void this.#makeAll();
  }

  /** Takes the model that makes vectors from now on; undefined if there is none. */
  async use(embedder: Embedder | undefined): Promise<void> {
    this.#abort.abort();
    this.#embedder = embedder;
    if (embedder) await this.#library.use(embedder.key);
    this.show();
    void this.#makeAll();
  }

  /** Makes the vectors of all files that have none by the current model. */
  async #makeAll(): Promise<void> {
    const embedder = this.#embedder;
    if (embedder === undefined || this.#current !== undefined) return;
    const { signal } = (this.#abort = new AbortController());
    try {
      for (let file = this.#library.missing; file !== undefined; file = this.#library.missing) {
        const { id } = (this.#current = file);
        await this.#library.embed(file, embedder, signal, (done, total) => {
          working.set(id, `${done} of ${total} passages`);
          this.show();
        });
        working.delete(id);
      }
    } catch (error) {
      if (!signal.aborted && !isCancelled(error)) {
        this.#embedder = undefined;
        showNotice('library', error);
      }
    }
    working.clear();
    this.#current = undefined;
    this.show();
    // Another model, or a file that was removed meanwhile.
    if (signal.aborted) void this.#makeAll();
  }

  async #remove(file: StoredFile): Promise<void> {
    if (this.#current === file) this.#abort.abort();
    try {
      await this.#library.remove(file.id);
    } catch (error) {
      showNotice('library', error);
    }
    this.show();
    input.focus();
  }

  show(): void {
    const { files, keeps } = this.#library;
    const hasModel = this.#embedder !== undefined;
    wants.hidden = hasModel || files.length === 0;
    const all = files.length === 1 ? 'One file' : `${files.length} files`;
    const count = files.reduce((sum, { id }) => sum + (this.#library.passages(id) ?? 0), 0);
    const isDone = this.#library.missing === undefined;
    const words = [
      files.length === 0
        ? 'No files yet.'
        : !hasModel
          ? `${all}, and no model that makes vectors of them.`
          : isDone
            ? `${all}, ${count === 1 ? 'one passage' : `${count} passages`}.`
            : 'Making vectors …',
      ...(!keeps
        ? ['This browser keeps no files: they are gone with the page.']
        : files.length === 0
          ? ['Files that you add stay in this browser.']
          : []),
    ].join(' ');
    if (status.textContent !== words) status.textContent = words;
    for (const [i, file] of files.entries()) putAt(rows, i, this.#rowOf(file));
    while (rows.children.length > files.length) rows.lastChild!.remove();
  }

  /** Returns the row of a file, which is made once. Only its words change. */
  #rowOf(file: StoredFile): HTMLElement {
    const passages = this.#library.passages(file.id);
    const made = passages === undefined ? undefined : passages === 1 ? 'one passage' : `${passages} passages`;
    const words = [format.bytes(file.bytes), made ?? working.get(file.id) ?? 'waits'].join(' · ');
    const row = this.#rows.get(file) ?? this.#row(file);
    this.#rows.set(file, row);
    const place = row.querySelector('small')!;
    if (place.textContent !== words) place.textContent = words;
    return row;
  }

  #row(file: StoredFile): HTMLElement {
    const remove = smallButton('Remove', () => void this.#remove(file));
    remove.setAttribute('aria-label', `Remove ${file.name}`);
    return make(
      'li',
      {},
      make('div', { class: 'row-text' }, make('strong', {}, file.name), make('small')),
      make('div', { class: 'row-actions' }, remove),
    );
  }
}
