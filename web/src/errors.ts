// Typed errors with the engine's codes.
import { errorNumbers } from './errors.gen.js';

export type ErrorName = keyof typeof errorNumbers;

/** Where a failure was, for those that have to do with an address. */
export interface ErrorPlace {
  url?: string;
  /** Of HTTP. */
  status?: number;
}

/** What crosses the worker boundary in place of an exception. */
export interface ErrorInfo extends ErrorPlace {
  code: ErrorName;
  sentence: string;
}

/** Everything that load(), generate() and the cache reject with, except a signal's own reason. */
export class QSFError extends Error {
  override readonly name = 'QSFError';
  /** One of the names in docs/errors.md. */
  readonly code: ErrorName;
  /** The address that was read, where it matters. */
  readonly url: string | undefined;
  /** The status that the server answered with. */
  readonly status: number | undefined;

  constructor(code: ErrorName, sentence: string, options: ErrorOptions & ErrorPlace = {}) {
    super(sentence, options);
    this.code = code;
    this.url = options.url;
    this.status = options.status;
  }

  /** The same failure, of an address. */
  at(url: string): QSFError {
    const place = { url, ...(this.status !== undefined && { status: this.status }) };
    return new QSFError(this.code, `${url}: ${this.message}`, { cause: this.cause, ...place });
  }

  /** The stable number that the C API uses. */
  get number(): number {
    return errorNumbers[this.code];
  }
}

const names = new Map(Object.entries(errorNumbers).map(([name, number]) => [number as number, name as ErrorName]));

/** The name of an engine's error number; `internal` for one that is not in the list. */
export function errorName(number: number): ErrorName {
  return names.get(number) ?? 'internal';
}

/** Any thrown value as code and sentence; what is not ours is a defect, told with its own message. */
export function errorInfo(thrown: unknown): ErrorInfo {
  if (thrown instanceof QSFError) {
    const { code, message, url, status } = thrown;
    return { code, sentence: message, ...(url !== undefined && { url }), ...(status !== undefined && { status }) };
  }
  if (thrown instanceof Error) return { code: 'internal', sentence: `${thrown.name}: ${thrown.message}` };
  return { code: 'internal', sentence: String(thrown) };
}
