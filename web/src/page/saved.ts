// Saved sequences that the browser keeps, from the page's side.
import { findSaved, listSaved, removeSaved, savedName } from '../sources/saved-files.js';
import type { SavedEntry } from '../types.js';

export const saved = {
  /** Returns every stored sequence, by name. */
  list: (): Promise<SavedEntry[]> => listSaved(),

  /** Returns the file of a name, for example for a download; undefined if there is none. */
  get: async (name: string): Promise<File | undefined> => findSaved(savedName(name)),

  /** Removes the file of a name, if there is one. */
  remove: async (name: string): Promise<void> => removeSaved(savedName(name)),
};
