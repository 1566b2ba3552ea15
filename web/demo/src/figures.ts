// The figures next to a story.

import type { Stats } from 'qsf';
import { byId, make } from './dom.js';
import * as format from './format.js';

const box = byId('figures', HTMLElement);
const live = byId('live', HTMLElement);

const VARIANTS = { relaxed: 'relaxed SIMD', relaxedpairs: 'relaxed SIMD', simd: 'SIMD' } as const;

/** Shows the speed of the story, the sources of its bytes, and the engine's variant and threads. */
export function drawFigures({ generation, io, engine, memory }: Stats): void {
  const speed = generation?.tokensPerSecond;
  const first = generation?.firstTokenMs;
  const rows: [string, string][] = [
    ['Speed', speed === undefined ? '–' : `${format.rate(speed)} tokens/s`],
    ['First word after', first === undefined ? '–' : `${first.toFixed(0)} ms`],
    ['Written', generation === undefined ? '–' : `${generation.tokens.length} tokens`],
    ['Downloaded', format.bytes(io.network)],
    ['Read from this browser', format.bytes(io.cache + io.blob)],
    [
      'WebAssembly',
      `${VARIANTS[engine.variant]}, ${engine.threads === 1 ? 'one thread' : `${engine.threads} threads`}`,
    ],
  ];
  box.replaceChildren(...rows.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
  live.textContent =
    speed === undefined ? '' : `${format.rate(speed)} tokens/s in ${format.budget(memory.budget)} of memory`;
}
