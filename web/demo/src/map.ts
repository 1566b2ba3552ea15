// The drawing of the memory map: the budget as one bar, its legend with exact numbers, and the model file as a strip of
// segments. It uses only stats().

import type { Stats } from 'qsf';
import { make } from './dom.js';
import * as format from './format.js';

/** The regions of the budget, in the order of the drawing. */
const KINDS = [
  { name: 'pinned', label: 'Weights kept', what: 'always in memory' },
  { name: 'ring', label: 'Weights streamed', what: 'a ring of slots' },
  { name: 'kv', label: 'KV cache', what: 'the text so far' },
  { name: 'scratch', label: 'Scratch', what: 'activations, scores, logits' },
  { name: 'fixed', label: 'Tables', what: 'vocabulary, segments, session' },
  { name: 'host', label: 'Stack and data', what: 'outside the arena' },
  { name: 'free', label: 'Free', what: 'left over' },
] as const;

type Kind = (typeof KINDS)[number]['name'];

/** Returns the bytes of each region. The host reserve is the rest of the budget outside the arena. */
function cut({ memory, plan }: Stats): Record<Kind, number> {
  const arena = {
    pinned: plan.pinnedBytes,
    ring: plan.ringBytes,
    kv: plan.kvBytes,
    scratch: plan.scratchBytes,
    fixed: plan.fixedBytes,
    free: plan.freeBytes,
  };
  return { ...arena, host: memory.budget - sum(Object.values(arena)) };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

/** Draws the bar and its legend, whose numbers add up to the budget. */
export function drawMap(barInto: HTMLElement, into: HTMLElement, stats: Stats): void {
  const { budget } = stats.memory;
  const regions = cut(stats);
  const bar = make('div', { class: 'bar', 'aria-hidden': 'true' });
  const rows: HTMLElement[] = [];
  for (const kind of KINDS) {
    const bytes = regions[kind.name];
    if (bytes > 0) {
      const block = make('div', { class: `block ${kind.name}` }, make('span', {}, kind.label));
      block.style.flexGrow = String(bytes);
      bar.append(block);
    }
    rows.push(
      make(
        'tr',
        bytes > 0 ? {} : { class: 'none' },
        make(
          'th',
          { scope: 'row' },
          make('span', { class: `swatch ${kind.name}`, 'aria-hidden': 'true' }),
          make('span', {}, kind.label),
          make('small', {}, kind.what),
        ),
        make('td', { 'data-bytes': String(bytes), title: format.exact(bytes) }, format.bytes(bytes)),
        make('td', {}, format.share(bytes, budget)),
      ),
    );
  }
  const total = sum(Object.values(regions));
  const table = make(
    'table',
    { class: 'legend' },
    make('caption', { class: 'visually-hidden' }, 'How the budget is used'),
    make('tbody', {}, ...rows),
    make(
      'tfoot',
      {},
      make(
        'tr',
        {},
        make('th', { scope: 'row' }, 'Together'),
        make('td', { 'data-total': String(total), title: format.exact(total) }, format.bytes(total)),
        make('td', {}, format.share(total, budget)),
      ),
    ),
  );
  barInto.replaceChildren(bar);
  into.replaceChildren(table);
}

/** Draws the model file with a block for each segment: solid if pinned, striped if streamed. */
export function drawStrip(into: HTMLElement, { plan }: Stats): void {
  const strip = make('div', { class: 'strip', 'aria-hidden': 'true' });
  for (const [i, segment] of plan.residency.entries()) {
    const block = make('div', {
      class: segment.pinned ? 'block pinned' : 'block ring',
      title: `Segment ${i + 1}: ${format.bytes(segment.bytes)}, ${segment.pinned ? 'kept' : 'streamed'}`,
    });
    block.style.flexGrow = String(segment.bytes);
    strip.append(block);
  }
  const all = format.bytes(sum(plan.residency.map((s) => s.bytes)));
  const kept = format.bytes(sum(plan.residency.filter((s) => s.pinned).map((s) => s.bytes)));
  const text =
    plan.pinnedSegments === plan.segments
      ? `All ${plan.segments} segments (${all}) stay in memory: each is read once.`
      : `${plan.pinnedSegments} of ${plan.segments} segments stay in memory (${kept} of ${all}); ` +
        'the striped ones are read again for every token.';
  into.replaceChildren(strip, make('p', { class: 'small' }, text));
}
