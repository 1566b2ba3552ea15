// Ends of calls that nobody needs any more.

import { QSFError } from 'qsf';

export const isCancelled = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || (error instanceof QSFError && error.code === 'cancelled'));
