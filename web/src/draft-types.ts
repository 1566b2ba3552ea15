import type { QuantType } from './boundary.gen.js';
import type { ModelSource, Stats } from './types.js';

/** A second model that guesses the first one's tokens. */
export interface DraftOptions {
  /**
   * A smaller model with the same vocabulary, which guesses tokens. The model computes `guesses` of them at once (7 if not
   * given) and keeps those that it would have chosen: any text stays the same. The draft takes the part of `memory` that
   * keeps its weights in memory, at most half, and is fetched and kept as the model is. `network.headers` and
   * `network.credentials` are used for it unless its server is another one than the model's.
   */
  draft?: ModelSource | DraftModel | undefined;
}

/** A draft with a type of its own. */
export interface DraftModel {
  source: ModelSource;
  /** The type that all of its matrices are rounded to, as `quantType` of load() for the model. */
  quantType?: QuantType | undefined;
}

/** The figures of a draft, as those of the model. */
export interface DraftStats extends Pick<Stats, 'model' | 'plan' | 'io'> {
  /** Bytes of the budget that are the draft's; fixed by load(). */
  budget: number;
}
