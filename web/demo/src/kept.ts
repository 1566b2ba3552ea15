// The limit of the models that the demo keeps in the browser, together.

import * as format from './format.js';

/** Bytes: all suggested models have less. */
export const CACHE_LIMIT = 10e9;

/** What happens at the limit. */
export const AT_LIMIT =
  `At most ${format.fileSize(CACHE_LIMIT)} of models are kept: a new one replaces those that were opened longest ago. ` +
  'A larger one is not kept.';
