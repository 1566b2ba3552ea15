// The queue of calls that take a sequence.
import { beforeEach, describe, expect, it } from 'vitest';

import { promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type { GenerateRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { Sequences } from '../../web/src/worker/sequences.js';
import type { Claim, Turn } from '../../web/src/worker/sequences.js';
import { pause } from './fake-engine.js';

const request = (given: Partial<GenerateRequest> = {}): GenerateRequest => ({
  ...checkOptions(samplerOptions, {}),
  ...checkOptions(promptOptions, {}),
  ...{ prompt: 'Once', stop: [], anew: true, ...given },
});

/** Each scarce part is there once. */
const once = () => 1;

let ids = 0;
beforeEach(() => {
  ids = 0;
});
const claim = (given: Partial<Claim> = {}): Claim => ({
  ...{ id: String(++ids), caller: 'page', kind: 'generation' as const, request: request() },
  ...given,
});
const ofKind = (kind: Claim['kind'], given: Partial<Claim> = {}): Claim => ({
  ...{ id: String(++ids), caller: 'page', kind },
  ...given,
});
const anew = (prompt: GenerateRequest['prompt'], given: Partial<Claim> = {}) =>
  claim({ request: request({ prompt }), ...given });
const goesOn = (given: Partial<Claim> = {}) => claim({ request: request({ anew: false }), ...given });

/** Returns the sequences of calls that got in, by the order of the calls; undefined for those that wait. */
async function sequencesOf(turns: readonly Promise<Turn>[]): Promise<(number | undefined)[]> {
  const got: (number | undefined)[] = turns.map(() => undefined);
  turns.forEach((turn, i) => void turn.then(({ sequence }) => (got[i] = sequence)));
  await pause(0);
  return got;
}

describe('calls', () => {
  it('get free sequences, and wait in their order for others', async () => {
    const waits: boolean[] = [];
    const all = new Sequences(2, (any) => waits.push(any), once);
    const turns = [1, 2, 3, 4].map(() => all.take(claim()));
    expect(await sequencesOf(turns)).toEqual([0, 1, undefined, undefined]);
    expect(waits).toEqual([false, false, true, true]);
    (await turns[1]!).end();
    expect(await sequencesOf(turns)).toEqual([0, 1, 1, undefined]);
    (await turns[1]!).end(); // a second time, which is nobody's end
    expect(await sequencesOf(turns)).toEqual([0, 1, 1, undefined]);
    (await turns[0]!).end();
    expect(await sequencesOf(turns)).toEqual([0, 1, 1, 0]);
    expect(waits.at(-1)).toBe(false);
  });

  it('that wait for one sequence do not hold up those that have another', async () => {
    const all = new Sequences(2, () => undefined, once);
    const turns = [all.take(claim()), all.take(ofKind('rewind', { sequence: 0 })), all.take(claim())];
    expect(await sequencesOf(turns)).toEqual([0, undefined, 1]);
    (await turns[0]!).end();
    expect(await sequencesOf(turns)).toEqual([0, 0, 1]);
  });

  it('leave the queue when they are withdrawn', async () => {
    const all = new Sequences(1, () => undefined, once);
    const first = await all.take(claim());
    const [second, third, fourth] = [claim(), claim(), claim()].map((one) => all.take(one));
    all.withdraw('2');
    await expect(second).rejects.toMatchObject({ code: 'cancelled' });
    first.end();
    expect((await third!).sequence).toBe(0);
    all.withdrawAll();
    await expect(fourth).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('are refused for a sequence that there is not', async () => {
    const all = new Sequences(2, () => undefined, once);
    await expect(all.take(claim({ sequence: 2 }))).rejects.toMatchObject({ code: 'bad_argument' });
    expect((await all.take(claim({ sequence: 1 }))).sequence).toBe(1);
  });

  it('that the engine can do a number of times at once wait for the others', async () => {
    const numbers = { grammar: 2, thoughts: 1, file: 1 };
    const all = new Sequences(
      8,
      () => undefined,
      (part) => numbers[part],
    );
    const regex = { grammar: { kind: 'regex', text: 'a' } as const };
    const calls = { hold: { thought: undefined, calls: { required: false, only: '' } } };
    const thoughts = { hold: { thought: 3, calls: undefined } };
    const turns = [
      ...[regex, calls, regex, thoughts, thoughts, {}].map((given) => all.take(claim({ request: request(given) }))),
      ...[all.take(ofKind('restore')), all.take(ofKind('restore'))],
    ];
    expect(await sequencesOf(turns)).toEqual([0, 1, undefined, 2, undefined, 3, 4, undefined]);
    (await turns[5]!).end();
    expect(await sequencesOf(turns)).toEqual([0, 1, undefined, 2, undefined, 3, 4, undefined]);
    for (const i of [1, 3, 6]) (await turns[i]!).end();
    expect((await sequencesOf(turns)).every((sequence) => sequence !== undefined)).toBe(true);
  });
});

describe('a call that begins anew', () => {
  it('takes the sequence whose prompt it continues, else the one that was used longest ago', async () => {
    const all = new Sequences(3, () => undefined, once);
    const one = async (prompt: GenerateRequest['prompt']) => {
      const turn = await all.take(anew(prompt));
      turn.end();
      return turn.sequence;
    };
    const chat = (...contents: string[]) => ({
      ...{ template: '', more: '', values: JSON.stringify({ messages: contents, add_generation_prompt: true }) },
    });
    expect([await one('Once'), await one(chat('a')), await one(Uint32Array.of(1, 2))]).toEqual([0, 1, 2]);
    expect(await one(chat('a', 'b', 'c'))).toBe(1);
    expect(await one('Once upon')).toBe(0);
    expect(await one(Uint32Array.of(1, 2, 3))).toBe(2);
    expect(await one(chat('b'))).toBe(1);
    expect(await one(Uint32Array.of(1, 3))).toBe(0);
  });
});

describe('a call that continues', () => {
  it('has the sequence of the last generation before it, and not of later ones', async () => {
    const all = new Sequences(2, () => undefined, once);
    const turns = [all.take(claim()), all.take(goesOn()), all.take(claim())];
    expect(await sequencesOf(turns)).toEqual([0, undefined, 1]);
    (await turns[0]!).end();
    expect(await sequencesOf(turns)).toEqual([0, 0, 1]);
    (await turns[2]!).end();
    (await all.take(ofKind('embedding'))).end();
    (await turns[1]!).end();
    expect((await all.take(ofKind('save'))).sequence).toBe(0);
  });

  it('waits for a generation before it that waits', async () => {
    const all = new Sequences(2, () => undefined, once);
    (await all.take(claim())).end();
    const other = await all.take(claim({ caller: 'other', sequence: 1 }));
    const turns = [claim({ sequence: 1 }), goesOn()].map((one) => all.take(one));
    expect(await sequencesOf(turns)).toEqual([undefined, undefined]);
    other.end();
    expect(await sequencesOf(turns)).toEqual([1, undefined]);
    (await turns[0]!).end();
    expect(await sequencesOf(turns)).toEqual([1, 1]);
  });

  it('has an empty sequence if there was none, and never that of another caller', async () => {
    const all = new Sequences(2, () => undefined, once);
    (await all.take(claim({ caller: 'other' }))).end();
    const turn = await all.take(goesOn());
    expect(turn.sequence).toBe(1);
    turn.end();
    await expect(all.take(goesOn({ sequence: 0 }))).rejects.toMatchObject({ code: 'bad_state' });
    (await all.take(claim({ caller: 'other', sequence: 1 }))).end();
    await expect(all.take(goesOn())).rejects.toMatchObject({ code: 'bad_state' });
    await expect(all.take(ofKind('rewind', { caller: 'third' }))).rejects.toMatchObject({ code: 'bad_state' });
  });
});

describe('a turn', () => {
  it('is the last until another call changes its sequence', async () => {
    const all = new Sequences(2, () => undefined, once);
    const turn = await all.take(claim());
    turn.end();
    (await all.take(claim({ sequence: 1 }))).end();
    (await all.take(ofKind('save', { sequence: 0 }))).end();
    expect(turn.isLast).toBe(true);
    (await all.take(ofKind('rewind', { sequence: 0 }))).end();
    expect(turn.isLast).toBe(false);
  });
});
