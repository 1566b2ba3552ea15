// The list of suggested models.
import { describe, expect, it } from 'vitest';

import { QSF } from '../../web/src/index.js';
import { MiB } from '../../web/src/constants.js';
import { ofHub } from '../../web/src/page/hub.js';

/** The most bytes that load() takes. */
const MOST_MEMORY = 4096 * MiB - 65536;

describe('QSF.models', () => {
  it('has a dozen models or more, each once, smallest first for each use', () => {
    expect(QSF.models.length).toBeGreaterThanOrEqual(12);
    for (const key of ['id', 'title', 'source'] as const)
      expect(new Set(QSF.models.map((model) => model[key])).size).toBe(QSF.models.length);
    for (const use of ['chat', 'embedding', 'rerank'] as const) {
      const sizes = QSF.models.filter((model) => model.use === use).map(({ bytes }) => bytes);
      expect(sizes.length).toBeGreaterThan(0);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    }
  });

  it.each(QSF.models.map((model) => [model.id, model] as const))('%s is whole', (id, model) => {
    expect(id).toMatch(/^[a-z0-9][a-z0-9.-]*$/);
    expect(model.title.trim()).not.toBe('');
    expect(model.about).toMatch(/^[A-Za-z].*\.$/);
    expect(model.licence).toMatch(
      /^(Apache-2\.0|MIT|Gemma Terms of Use|Llama 3\.2 Community License|LFM Open License v1\.0)$/,
    );
    expect(String(ofHub(model.source))).toMatch(
      /^https:\/\/huggingface\.co\/[\w.-]+\/[\w.-]+\/resolve\/main\/([\w.-]+\.gguf)?$/,
    );
    for (const number of [model.parameters, model.bytes, model.weightBytes, model.memory, model.contextLength])
      expect(Number.isSafeInteger(number) && number > 0).toBe(true);
    // From 2 to 33 bits for each weight: a slip of a digit is outside.
    expect((8 * model.bytes) / model.parameters).toBeGreaterThan(2);
    expect((8 * model.bytes) / model.parameters).toBeLessThan(33);
  });

  it('states a memory that holds the weights, and that load() takes', () => {
    for (const { id, memory, weightBytes } of QSF.models) {
      expect(memory % MiB, id).toBe(0);
      expect(memory, id).toBeGreaterThan(weightBytes * 1.125);
      expect(memory, id).toBeLessThan(MOST_MEMORY);
    }
  });

  it('cannot be changed', () => {
    expect(Object.isFrozen(QSF.models)).toBe(true);
    expect(QSF.models.every((model) => Object.isFrozen(model))).toBe(true);
  });
});
