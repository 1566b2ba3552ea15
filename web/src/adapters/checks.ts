// Checks of what callers without types give to adapters.
import { QSFError } from '../errors.js';
import { shown } from '../page/options.js';

/** Throws bad_argument for a value without these members of a model. `what` names the call. */
export function checkModel(what: string, given: unknown, members: readonly string[], otherwise = ''): void {
  const isObject = typeof given === 'object' && given !== null;
  if (isObject && members.every((name) => name in given)) return;
  const rule = `it must be one that QSF.load() gave${otherwise}`;
  throw new QSFError('bad_argument', `the model of ${what} is ${shown(given)}; ${rule}`);
}
