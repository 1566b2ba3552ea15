// The speed and the bytes of a story at each budget that was tried, measured on this machine.

import type { Stats } from 'qsf';
import { byId, make } from './dom.js';
import * as format from './format.js';
import { bytesPerToken } from './speeds.js';

interface Run {
  tokensPerSecond: number;
  bytesPerToken: number;
}

const runs = new Map<number, Run>();
const card = byId('runs', HTMLElement);
const rows = byId('runs-rows', HTMLElement);

/**
 * Notes a story from the statistics before and after it, in place of the last one at its budget, and shows all of them.
 */
export function noteRun(before: Stats, stats: Stats): void {
  const { tokensPerSecond } = stats.generation ?? {};
  const bytes = bytesPerToken(before.io.engine, stats);
  if (tokensPerSecond === undefined || bytes === undefined) return;
  runs.set(stats.memory.budget, { tokensPerSecond, bytesPerToken: bytes });
  const fastest = Math.max(...[...runs.values()].map((r) => r.tokensPerSecond));
  rows.replaceChildren(
    ...[...runs]
      .sort(([a], [b]) => a - b)
      .map(([memory, r]) => {
        const bar = make('span', { class: 'run-bar', 'aria-hidden': 'true' });
        bar.style.width = `${(100 * r.tokensPerSecond) / fastest}%`;
        return make(
          'tr',
          {},
          make('th', { scope: 'row' }, format.budget(memory)),
          make('td', {}, make('span', { class: 'run' }, bar, make('span', {}, format.rate(r.tokensPerSecond)))),
          make('td', {}, format.bytes(r.bytesPerToken)),
        );
      }),
  );
  card.hidden = false;
}
