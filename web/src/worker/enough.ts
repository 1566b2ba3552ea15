// The refusal of a budget without room for the tables that a plan needs. Only a plan knows what it needs, so a budget that
// is enough is found by trying, as natively.
import { MiB } from '../constants.js';
import type { LoadRequest } from '../contract.js';
import { QSFError } from '../errors.js';
import { Model } from './model.js';
import type { Starters } from './model.js';

const MOST = 2 ** 32;
const SILENT = { progress: () => {}, warning: () => {} };

/**
 * Returns the error of a model that did not open, and closes it. A refusal of its budget that has no plan gets a budget that
 * is enough. While that is tried, the worker takes more than the budget.
 */
export async function refusalOf(
  error: unknown,
  model: Model | undefined,
  request: LoadRequest,
  start: Starters,
): Promise<unknown> {
  const isSmall = (other: unknown) => other instanceof QSFError && other.code === 'budget_too_small';
  if (!isSmall(error) || request.draft !== undefined || model?.hasCounted === true) return error;
  await model?.close();
  for (let memory = 2 * request.memory; memory < MOST; memory *= 2) {
    let trial: Model | undefined;
    try {
      trial = await Model.create({ ...request, memory, threads: 1, lazy: true }, SILENT, start);
      await trial.load();
      return new QSFError('budget_too_small', `${(error as QSFError).message}; ${memory / MiB} MiB would do`);
    } catch (other) {
      if (!isSmall(other)) return error;
    } finally {
      await trial?.close();
    }
  }
  return error;
}
