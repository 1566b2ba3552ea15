import { describe, expect, it } from 'vitest';

import { answering, remoteEngine } from '../../web/src/contract.js';
import type { EngineWorker, GenerateRequest } from '../../web/src/contract.js';
import { QSFError } from '../../web/src/errors.js';
import { CALL } from './call.js';

describe('a remote engine', () => {
  const asked: unknown[] = [];
  const ask = async (...call: unknown[]) => {
    asked.push(call);
    return { ok: true, value: 7 } as const;
  };

  it('asks for every call by its name, with its arguments', async () => {
    const remote = remoteEngine(ask);
    expect(await remote.tokenize('a', true)).toEqual({ ok: true, value: 7 });
    await remote.stop('a');
    expect(asked.splice(0)).toEqual([
      ['tokenize', ['a', true]],
      ['stop', ['a']],
    ]);
  });

  it('does itself what it is given, and can be awaited', async () => {
    const remote = await Promise.resolve(remoteEngine(ask, { close: async () => ({ ok: true, value: undefined }) }));
    expect(await remote.close()).toEqual({ ok: true, value: undefined });
    expect(asked).toEqual([]);
  });
});

describe('a worker', () => {
  const worker: Partial<EngineWorker> = {
    tokenize: (text, special) => Uint32Array.of(text.length, Number(special)),
    start: () => {
      throw new QSFError('bad_state', 'A generation is running.');
    },
    next: async () => {
      throw new TypeError('x is not a function');
    },
  };
  const remote = answering(worker as EngineWorker);

  it('answers with what its calls give', async () => {
    expect(await remote.tokenize('ab', true)).toEqual({ ok: true, value: Uint32Array.of(2, 1) });
  });

  it('answers with what they throw, at once or later', async () => {
    const answer = await remote.start(CALL, {} as GenerateRequest);
    expect(answer).toEqual({ ok: false, error: { code: 'bad_state', sentence: 'A generation is running.' } });
    expect(await remote.next('a')).toMatchObject({ ok: false, error: { code: 'internal' } });
  });
});
