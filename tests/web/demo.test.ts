// The demo's modules that need no page: speeds over time, links, the room for tokens.
import { describe, expect, it, vi } from 'vitest';

import { QSF } from '../../web/src/index.js';
import type { GenerationStats, Stats } from '../../web/src/index.js';
import { hostOf, hubName, lastName, modelAddress, shownAddress } from '../../web/demo/src/address.js';
import { consequences } from '../../web/demo/src/consequences.js';
import { AT_LIMIT, CACHE_LIMIT } from '../../web/demo/src/kept.js';
import { budgetHelps, hasRoom, tooLong } from '../../web/demo/src/room.js';
import { linkTo, readLink } from '../../web/demo/src/share.js';
import { ModelSlot } from '../../web/demo/src/slot.js';
import { Speeds, bytesPerToken } from '../../web/demo/src/speeds.js';
import { OTHERWISE, titleOf } from '../../web/demo/src/titles.js';
import { OF_FILE } from '../../web/src/worker/runner.js';

const options = { temperature: 0.8, maxTokens: 20, topK: 40, topP: 0.95, seed: 7 };
const PAGE = 'https://demo.test/page';

/** What the engine says of a generation after so many tokens, which came at these times in milliseconds. */
function after(tokens: number, times: readonly number[]): GenerationStats {
  const took = (times[tokens - 1] ?? 0) - times[0]!;
  const ids = times.slice(0, tokens).map((_, i) => i);
  return {
    ...{ promptTokens: 3, reusedTokens: 0, tokens: ids, position: 3 + tokens, sequence: 0, running: true, seed: 1 },
    ...(tokens > 1 && { tokensPerSecond: (1000 * (tokens - 1)) / took }),
  };
}

/** The speeds of tokens at these times, looked at after these numbers of them. */
function speedsOf(times: readonly number[], looks: readonly number[]): number[] {
  const speeds = new Speeds();
  for (const tokens of looks) speeds.add(after(tokens, times));
  return speeds.all();
}

const every = (ms: number, tokens: number): number[] => Array.from({ length: tokens }, (_, i) => 50 + i * ms);

describe('the speeds of a story', () => {
  it('are those of a story that was over at the first look', () => {
    expect(speedsOf(every(1.25, 200), [200, 200])).toEqual([expect.closeTo(800, 6)]);
  });

  it('do not fall to nothing between two tokens of a slow model', () => {
    const looks = [1, 1, 1, 2, 2, 2, 2, 3, 3, 3];
    expect(speedsOf(every(900, 3), looks)).toEqual([expect.closeTo(1000 / 900, 6), expect.closeTo(1000 / 900, 6)]);
  });

  it('follow the tokens', () => {
    const times = [
      ...every(2, 101),
      ...every(10, 51)
        .slice(1)
        .map((at) => at + 200),
    ];
    const speeds = speedsOf(times, [51, 101, 111, 121, 131, 141, 151]);
    expect(speeds[0]).toBeCloseTo(500, 6);
    for (const speed of speeds.slice(2)) expect(speed).toBeCloseTo(100, 6);
  });

  it('are joined if a stretch is too short to have one', () => {
    const times = [0, 100, 200, 300, 301];
    for (const speed of speedsOf(times, [2, 3, 4, 5])) expect(speed).toBeCloseTo(10, 6);
  });

  it('are none before the second token', () => {
    expect(speedsOf([50, 60], [0, 1])).toEqual([]);
  });

  it('come with the bytes of a token', () => {
    const stats = (tokens: number) => ({ io: { engine: 900 }, generation: after(tokens, [1, 2, 3]) }) as Stats;
    expect(bytesPerToken(300, stats(3))).toBe(200);
    expect(bytesPerToken(300, stats(0))).toBeUndefined();
  });
});

describe('a link', () => {
  it.each(['https://models.test/a.qsf?b=c', 'Https://Models.test/a.qsf?b=c', 'HTTPS://models.test/a.qsf?b=c'])(
    'holds the address %s',
    (model) => {
      const { hash } = new URL(linkTo(PAGE, { prompt: 'Once', budget: 1 << 20, options, model }));
      expect(readLink(hash)).toEqual({
        prompt: 'Once',
        budget: 1 << 20,
        options,
        model: 'https://models.test/a.qsf?b=c',
      });
    },
  );

  it('takes an address as it was typed', () => {
    const model = 'Http://localhost:80/a.qsf';
    expect(readLink(`#${new URLSearchParams({ prompt: '', model })}`)?.model).toBe('http://localhost/a.qsf');
    for (const other of ['ftp://models.test/a.qsf', 'models.test/a.qsf', 'javascript:alert(1)', '']) {
      expect(readLink(`#${new URLSearchParams({ prompt: '', model: other })}`)).not.toHaveProperty('model');
      expect(modelAddress(other)).toBeUndefined();
    }
  });

  it('has no user and no password, of the model or of the page', () => {
    const model = 'https://ann:s3cret@models.test/a.qsf';
    const link = linkTo('https://bob:hidden@demo.test/page', { prompt: 'Once', budget: 1 << 20, options, model });
    expect(decodeURIComponent(link)).toContain('https://models.test/a.qsf');
    expect(decodeURIComponent(link)).not.toMatch(/ann|s3cret|bob|hidden/);
  });
});

describe('an address that is shown', () => {
  it('names the server, whatever it has before that', () => {
    expect(hostOf('https://huggingface.co@models.test:8443/a.gguf')).toBe('models.test:8443');
    for (const name of ['hf:owner/name', 'Huggingface:owner/name/a.gguf@main'])
      expect(hostOf(name)).toBe('huggingface.co');
  });

  it('has no secrets and no characters that change the order of others', () => {
    const address = modelAddress('https://ann:s3cret@models.test/ä.gguf?key=s3cret#s3cret')!;
    expect(shownAddress(address)).toBe('https://***@models.test/%C3%A4.gguf?key=***#***');
    expect(shownAddress('hf:owner/name\u202efugg.a')).toBe('hf:owner/name%E2%80%AEfugg.a');
    expect(lastName('https://models.test/a%E2%80%AEfugg')).toBe('a\ufffdfugg');
    expect(lastName('https://models.test/%zz.gguf')).toBe('%zz.gguf');
    expect(hubName('https://huggingface.co/owner/name/resolve/%zz/a.gguf')).toBe('hf:owner/name/a.gguf@%zz');
  });
});

describe('the consequences of a budget', () => {
  const MIB = 1024 * 1024;
  const plan = {
    weightBytes: 100 * MIB,
    pinnedBytes: 25 * MIB,
    tokenBytes: 76 * MIB,
    kv: 'f16',
    maxSeqLen: 9,
  } as const;

  it('are what stays and streams, the bits of keys and values, and the speed', () => {
    const expected = { tokensPerSecond: 7.04, residentMemory: 1, residentTokensPerSecond: 1 };
    expect(consequences(plan, expected)).toBe(
      '25.00 MiB of the model’s 100.00 MiB stay in memory, and 76.00 MiB are read again for each token. ' +
        'Keys and values have 16 bits. About 7.0 tokens/s.',
    );
    const whole = { ...plan, pinnedBytes: plan.weightBytes, tokenBytes: 0 };
    expect(consequences({ ...whole, kv: '8bit' })).toBe(
      'All of the model stays in memory. Keys and values have 8 bits.',
    );
    expect(consequences({ ...whole, kv: 'k8v4' })).toMatch(/have 8 and 4 bits\.$/);
  });
});

describe('room for tokens', () => {
  const plan = (moreContext: string) => ({ maxSeqLen: 512, moreContext }) as Stats['plan'];
  const own = plan('a shorter text');
  const more = plan('a longer context (max_seq_len), a larger budget or a shorter text');

  it('is more with memory if the engine says so', () => {
    expect(budgetHelps(own)).toBe(false);
    expect(budgetHelps(more)).toBe(true);
    expect(tooLong(511, own)).toBeUndefined();
    expect(tooLong(512, own)).toMatch(/512 tokens.* 512 .*more memory does not help/);
    expect(tooLong(512, more)).toMatch(/give the model more memory/);
  });

  it('is left for a token and the one before', () => {
    expect(hasRoom({ position: 510, plan: own } as Stats)).toBe(true);
    expect(hasRoom({ position: 511, plan: own } as Stats)).toBe(false);
  });
});

describe('the models that the demo keeps', () => {
  it('have a limit, which is told and leaves room for all suggested ones', async () => {
    const load = vi.spyOn(QSF, 'load').mockRejectedValue(new Error('no engine here'));
    await expect(new ModelSlot('https://models.test/a.gguf').open(1, () => {})).rejects.toThrow('no engine');
    expect(load.mock.calls[0]![1]).toMatchObject({ memory: 1, cacheLimit: CACHE_LIMIT });
    load.mockRestore();
    expect(QSF.models.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(CACHE_LIMIT);
    expect(AT_LIMIT).toContain('At most 10.00 GB of models are kept');
  });
});

describe('the title of a failure', () => {
  it.each(OF_FILE)('says of %s that the file is the reason', (code) => {
    expect(titleOf(code)).toMatch(/model file/);
  });

  it('is general for codes that a user cannot cause, and for other errors', () => {
    expect(titleOf('internal')).toBe(OTHERWISE);
    expect(titleOf(undefined)).toBe(OTHERWISE);
  });
});
