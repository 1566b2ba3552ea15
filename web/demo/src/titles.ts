// The titles of failures, in the page's own words.

import type { ErrorName } from 'qsf';

const DAMAGED = 'The model file is damaged';
const FETCH = 'The model could not be fetched';

/** Titles by error code; other codes get OTHERWISE. */
const TITLES: Partial<Record<ErrorName, string>> = {
  budget_too_small: 'This budget is too small for the model',
  context_full: 'The text no longer fits into the context',
  network_error: FETCH,
  http_status: FETCH,
  no_ranges: 'The server does not send parts of files',
  file_changed: 'The model changed on the server',
  bad_magic: 'This is no model file',
  bad_version: 'The model file is of a version that this page cannot read',
  truncated: 'The model file is not whole',
  bad_header: DAMAGED,
  bad_index: DAMAGED,
  bad_section: DAMAGED,
  bad_segment: DAMAGED,
  bad_tensor: DAMAGED,
  bad_checksum: DAMAGED,
  bad_compression: DAMAGED,
  bad_tokenizer: DAMAGED,
  bad_template: 'The model cannot write this conversation',
  template_refusal: 'The model refuses this conversation',
  out_of_memory: 'The browser refused the memory',
  unsupported_host: 'This browser lacks something that is needed',
};
export const OTHERWISE = 'That did not work';

/** Returns the title of an error's code. */
export const titleOf = (code: ErrorName | undefined): string => (code && TITLES[code]) || OTHERWISE;
