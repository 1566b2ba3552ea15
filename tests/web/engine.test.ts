// What the engine's class adds to a session's calls: texts, errors, copies of what lies in memory.
import { beforeEach, describe, expect, it } from 'vitest';

import type { Engine } from '../../web/src/wasm/engine.js';
import { QSFError } from '../../web/src/errors.js';
import { FakeSession, fakeEngine } from './fake-engine.js';

let engine: Engine;
let instance: FakeSession;

beforeEach(() => {
  ({ engine, instance } = fakeEngine());
});

/** A view of the session's memory, which holds these numbers now and others later. */
function view<T extends Uint8Array | Uint32Array>(
  type: new (...args: [ArrayBuffer, number, number]) => T,
  of: number[],
) {
  const numbers = new type(instance.memory.buffer, 1024, of.length);
  numbers.set(of);
  return numbers;
}

describe('tokenize()', () => {
  it('gives ids that stay when memory changes', () => {
    const told: unknown[] = [];
    instance.tokenize = (...args: unknown[]) => {
      told.push(args);
      return view(Uint32Array, [9, 8]);
    };
    const ids = engine.tokenize('añb', false);
    view(Uint32Array, [1, 1]);
    expect(ids).toEqual(Uint32Array.of(9, 8));
    expect(told).toEqual([[4, false]]);
  });

  it('throws what failed', () => {
    instance.tokenize = () => ({ code: 18, sentence: 'There is no tokenizer.' });
    expect(() => engine.tokenize('a', true)).toThrow(
      expect.objectContaining({ code: 'bad_text', message: 'There is no tokenizer.' }) as QSFError,
    );
  });

  it('has room for an id for every byte, and refuses a text that there is no room for', () => {
    const sizes: number[] = [];
    const stage = instance.stage.bind(instance);
    instance.stage = (size) => {
      sizes.push(size);
      return stage(size);
    };
    engine.tokenize('four', true);
    expect(sizes[0]).toBeGreaterThanOrEqual(4 + 4 * 4);
    expect(() => engine.tokenize('x'.repeat(40_000), true)).toThrow(
      expect.objectContaining({ code: 'bad_argument' }) as QSFError,
    );
  });
});

describe('detokenize()', () => {
  it('puts characters together that tokens share, and replaces what is none', () => {
    const bytes = [[0xe2, 0x82], [0xac], [0xff], [0x41]];
    instance.detokenize = (token: number) => view(Uint8Array, bytes[token]!);
    expect(engine.detokenize(Uint32Array.of(0, 1, 3, 2), false)).toBe('€A\ufffd');
  });

  it('passes on whether control tokens have their text', () => {
    instance.detokenize = (_: number, special: boolean) => new TextEncoder().encode(special ? '<s>' : '');
    expect(engine.detokenize(Uint32Array.of(1, 2), true)).toBe('<s><s>');
    expect(engine.detokenize(Uint32Array.of(1, 2), false)).toBe('');
  });

  it('refuses a token that is not in the vocabulary', () => {
    expect(() => engine.detokenize(Uint32Array.of(512), false)).toThrow(
      expect.objectContaining({ code: 'bad_token' }) as QSFError,
    );
  });
});

it('tells of the model what its file states', () => {
  instance.detokenize = (token: number, special: boolean) => new TextEncoder().encode(special ? `<${token}>` : '');
  expect(engine.info()).toEqual({
    ...{ name: 'Small', architecture: undefined, contextLength: 64, vocabSize: 512, chatTemplate: '{{ messages }}' },
    beginToken: { id: 1, text: '<1>' },
    endTokens: [
      { id: 2, text: '<2>' },
      { id: 3, text: '<3>' },
    ],
  });
});

it('names the regions of memory', () => {
  instance.map = [['kv_cache', 7]];
  expect(engine.memoryMap()).toEqual([{ region: 'kv_cache', name: 'kv cache', bytes: 7 }]);
});
