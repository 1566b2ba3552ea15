// Typed errors with the engine's codes.
import { errorNumbers } from './errors.gen.js';
import { hideSecrets } from './secrets.js';
import { isTransient } from './sources/retry.js';

export type ErrorName = keyof typeof errorNumbers;

/** The location of a failure that concerns an address. */
export interface ErrorPlace {
  url?: string | undefined;
  /** The HTTP status. */
  status?: number | undefined;
}

/** An error as it crosses the worker boundary. */
export interface ErrorInfo extends ErrorPlace {
  code: ErrorName;
  sentence: string;
}

const MAY_PASS: readonly ErrorName[] = ['network_error', 'out_of_memory', 'file_changed'];

/**
 * The error that load(), generate(), the cache and all other calls reject with, except a signal's own reason. Each entry of
 * the package has a class of its own, and `instanceof` any of them holds for the errors of all.
 */
export class QSFError extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'QSFError' && 'code' in value && typeof value.code === 'string';
  }

  override readonly name = 'QSFError';
  /** One of the names in docs/reference/errors.md. */
  readonly code: ErrorName;
  /**
   * The address of the request, if the failure concerns one. User, password and query values are hidden, as in the
   * sentence.
   */
  readonly url: string | undefined;
  /** The HTTP status of the server's answer, if it is the reason. */
  readonly status: number | undefined;

  constructor(code: ErrorName, sentence: string, options: ErrorOptions & ErrorPlace = {}) {
    // Applications make errors too, without types.
    const { url, status, ...rest } = options ?? {};
    super(hideSecrets(String(sentence)), rest);
    this.code = code;
    this.url = url === undefined ? undefined : hideSecrets(String(url));
    this.status = status;
  }

  /** Returns the same failure with an address in front of its sentence. */
  at(url: string): QSFError {
    return new QSFError(this.code, `${url}: ${this.message}`, { cause: this.cause, url, status: this.status });
  }

  /**
   * Whether the same call may succeed later. True for network_error, out_of_memory and file_changed, and for
   * http_status if the status is 408, 429 or at least 500.
   */
  get mayPass(): boolean {
    return this.code === 'http_status' ? isTransient(this.status ?? 0) : MAY_PASS.includes(this.code);
  }

  /** The stable number that the C API uses. */
  get number(): number {
    return errorNumbers[this.code];
  }
}

const names = /* @__PURE__ */ new Map(
  Object.entries(errorNumbers).map(([name, number]) => [number as number, name as ErrorName]),
);

/** Returns the name of an engine's error number; `internal` for a number that is not in the list. */
export function errorName(number: number): ErrorName {
  return names.get(number) ?? 'internal';
}

/** Returns the message of any thrown value. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Returns any thrown value as a QSFError. A foreign error is a defect: it becomes `internal` with its own message. */
export function asError(thrown: unknown): QSFError {
  if (thrown instanceof QSFError) return thrown;
  const sentence = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  return new QSFError('internal', sentence, { cause: thrown });
}

/** Returns any thrown value in the form that crosses the worker boundary. */
export function errorInfo(thrown: unknown): ErrorInfo {
  const { code, message, url, status } = asError(thrown);
  return { code, sentence: message, ...(url !== undefined && { url }), ...(status !== undefined && { status }) };
}
