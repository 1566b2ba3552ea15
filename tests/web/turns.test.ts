import { describe, expect, it } from 'vitest';

import { Turns } from '../../web/src/page/turns.js';

describe('turns', () => {
  it('are had in the order in which they were asked for', async () => {
    const turns = new Turns();
    const had: string[] = [];
    await turns.take('a', true);
    const others = ['b', 'c'].map((tab) => turns.take(tab, true).then(() => had.push(tab)));
    expect(turns.owns('a')).toBe(true);
    turns.give('a');
    await others[0];
    expect(had).toEqual(['b']);
    expect(() => turns.check('a')).toThrow(/was closed/);
    turns.check('b');
    turns.give('b');
    await others[1];
    expect(had).toEqual(['b', 'c']);
  });

  it('that nobody waits for any more are passed over', async () => {
    const turns = new Turns();
    await turns.take('a', true);
    const b = turns.take('b', true);
    const c = turns.take('c', true);
    turns.give('b');
    await expect(b).rejects.toMatchObject({ code: 'cancelled' });
    expect(turns.owns('a')).toBe(true);
    turns.give('a');
    await c;
    expect(turns.owns('c')).toBe(true);
  });

  it('that one tab waits for several times end all', async () => {
    const turns = new Turns();
    await turns.take('a', true);
    const [b, c, again] = ['b', 'c', 'b'].map((tab) => turns.take(tab, true));
    turns.give('b');
    for (const waiting of [b, again]) await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    turns.give('a');
    await c;
    turns.give('c');
    expect(turns.owns('b')).toBe(false);
    await turns.take('a', true);
  });

  it('go on with one’s own sequence only', async () => {
    const turns = new Turns();
    await turns.take('a', true);
    await expect(turns.take('a', true)).rejects.toMatchObject({ code: 'bad_state' });
    turns.give('a');
    await turns.take('a', false);
    turns.give('a');
    await turns.take('b', true);
    turns.give('b');
    await expect(turns.take('a', false)).rejects.toMatchObject({ code: 'bad_state' });
    expect(turns.owns('a')).toBe(false);
    await turns.take('b', false);
  });
});
