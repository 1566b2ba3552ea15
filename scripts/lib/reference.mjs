// The folder of the documents that scripts write.
import { join } from 'node:path';

import { root } from './process.mjs';

/** The folder's path, relative to the checkout. */
export const reference = 'docs/reference';
export const inReference = (...names) => join(root, reference, ...names);
