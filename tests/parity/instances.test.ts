// Several models in one WebAssembly module: each session computes as if it were alone, and leaves its memory to others.
import { beforeAll, expect, it } from 'vitest';

import { Fed, startModule, stories } from './module.js';

const MiB = 1024 * 1024;
/** Less than the model's weights, so that sessions stream through rings of their own. */
const BUDGET = 4 * MiB;
/** Holds the module and two sessions' arenas of 3 MiB, but not three. */
const MEMORY = 9 * MiB;

let file: Uint8Array;
let made: Awaited<ReturnType<typeof startModule>>;

beforeAll(async () => {
  file = stories();
  made = await startModule(MEMORY);
});

const prompts = [
  [5, 6, 7, 8],
  [300, 200, 100, 50, 25, 12],
];

/** Begins the generation of that number. */
function start(fed: Fed, i: number): void {
  const how = { temperature: 0.8, maxTokens: 12, ignoreEos: true, logitsHash: true, seed: i };
  expect(fed.start(prompts[i]!, how)).toBeUndefined();
}

/** Runs generations side by side, a step of each in turn; gives what each made. */
function run(all: Fed[]): { tokens: number[]; hash: string; asked: number }[] {
  const results = all.map((fed, i) => {
    start(fed, i % 2);
    return { tokens: [] as number[], hash: '', asked: 0 };
  });
  const running = new Set(all.keys());
  while (running.size > 0) {
    for (const i of running) {
      const step = all[i]!.step();
      if (step === 'token') results[i]!.tokens.push(all[i]!.session.token());
      if (step !== 'done') continue;
      results[i]!.hash = all[i]!.session.logitsHash(0);
      results[i]!.asked = all[i]!.session.stats().bytesRead;
      running.delete(i);
    }
  }
  return results;
}

it('two sessions side by side compute what each computes alone', () => {
  // These are made before the first arena, so that each later arena fits where an earlier one was.
  const two = [new Fed(made, file), new Fed(made, file)];
  const third = new Fed(made, file);
  const alone = prompts.map((_, i) => {
    const fed = new Fed(made, file);
    expect(fed.open(BUDGET)).toBeUndefined();
    start(fed, i);
    const { tokens } = fed.generate();
    const result = { tokens, hash: fed.session.logitsHash(0), asked: fed.session.stats().bytesRead };
    fed.session.delete();
    return result;
  });
  expect(alone[0]!.hash).not.toBe(alone[1]!.hash);

  for (const fed of two) expect(fed.open(BUDGET)).toBeUndefined();
  expect(run(two)).toEqual(alone);

  // A failure of one is none of the other's.
  expect(two[0]!.session.rewind(1_000_000, 0)).toMatchObject({
    sentence: expect.stringContaining('1000000') as string,
  });
  expect(two[1]!.session.rewind(0, 0)).toBeUndefined();

  // There is no room for a third until one is gone.
  expect(third.open(BUDGET)).toMatchObject({ sentence: expect.stringContaining('no room for an arena') as string });
  two[0]!.session.delete();
  expect(third.open(BUDGET)).toBeUndefined();
  expect(run([third])[0]).toMatchObject({ tokens: alone[0]!.tokens, hash: alone[0]!.hash });
  for (const { session } of [third, two[1]!]) session.delete();
});
