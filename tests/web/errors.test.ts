import { readFileSync } from 'node:fs';

import { describe, expect, it, vi } from 'vitest';

import { reply, unwrap } from '../../web/src/contract.js';
import { QSFError, errorInfo, errorName } from '../../web/src/errors.js';

const list = readFileSync(new URL('../../include/qsf/base/errors.def', import.meta.url), 'utf8');
const engine = [...list.matchAll(/^QSF_ERROR\((\w+), (\d+),/gm)].map(
  ([, name, number]) => [name!, Number(number)] as const,
);

describe('errors', () => {
  it.each(engine)("%s is the engine's number %i", (name, number) => {
    expect(errorName(number)).toBe(name);
    expect(new QSFError(name as never, 'x').number).toBe(number);
  });

  it('of one entry of the package are instances of the class of another', async () => {
    vi.resetModules();
    const other = await import('../../web/src/errors.js');
    expect(other.QSFError).not.toBe(QSFError);
    expect(new other.QSFError('internal', 'x')).toBeInstanceOf(QSFError);
    for (const value of [
      new Error('x'),
      new DOMException('x', 'QSFError'),
      { name: 'QSFError', code: 'internal' },
      null,
    ])
      expect(value).not.toBeInstanceOf(QSFError);
  });

  it('of an unknown number are internal', () => {
    expect(errorName(9999)).toBe('internal');
  });

  it('cross the worker boundary with code and sentence', async () => {
    const sent = await reply(() => Promise.reject(new QSFError('bad_magic', 'The file begins with "GGUF".')));
    const received = structuredClone(sent);
    expect(() => unwrap(received)).toThrow(
      expect.objectContaining({ name: 'QSFError', code: 'bad_magic', message: 'The file begins with "GGUF".' }),
    );
    expect(unwrap(structuredClone(await reply(() => 5)))).toBe(5);
  });

  it.each([
    ['network_error', undefined, true],
    ['out_of_memory', undefined, true],
    ['file_changed', undefined, true],
    ['http_status', 503, true],
    ['http_status', 429, true],
    ['http_status', 404, false],
    ['http_status', 403, false],
    ['bad_magic', undefined, false],
    ['no_ranges', undefined, false],
    ['context_full', undefined, false],
    ['unsupported_host', undefined, false],
  ] as const)('of the kind %s %s may pass: %s', (code, status, passes) => {
    expect(new QSFError(code, 'It failed.', { status }).mayPass).toBe(passes);
  });

  it('that are not ours keep their message', () => {
    expect(errorInfo(new TypeError('x is not a function'))).toEqual({
      code: 'internal',
      sentence: 'TypeError: x is not a function',
    });
    expect(errorInfo('why')).toEqual({ code: 'internal', sentence: 'why' });
  });
});
