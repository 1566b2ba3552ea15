// The drawings of the engine's work while it writes: its speed as a line, and segments over time. They use stats() and
// trace().

import type { Span, Stats, Trace } from 'qsf';
import { byId, draw, make } from './dom.js';
import * as format from './format.js';
import { Speeds, bytesPerToken } from './speeds.js';

const WIDTH = 600;
const LINE_HEIGHT = 64;
const ROWS_HEIGHT = 110;
/** Height of each of the two bands under the segments. */
const BAND = 12;
/** Milliseconds without work that separate a story from earlier work. */
const PAUSE = 20;

const lineBox = byId('line', HTMLElement);
const timeBox = byId('timeline', HTMLElement);

let speeds = new Speeds();
/** Bytes that the engine had read before the story. */
let read = 0;

/** Forgets the last story. `stats` are those from before the next. */
export function beginWork({ io }: Stats): void {
  speeds = new Speeds();
  read = io.engine;
}

/** Draws the state since the story's beginning. */
export function drawWork(stats: Stats, trace: Trace): void {
  if (stats.generation) speeds.add(stats.generation);
  else speeds = new Speeds();
  drawLine(bytesPerToken(read, stats));
  drawTimeline(stats, trace);
}

export function clearWork(words: string): void {
  speeds = new Speeds();
  lineBox.replaceChildren(make('p', { class: 'small' }, words));
  timeBox.replaceChildren();
}

function drawLine(perToken: number | undefined): void {
  const all = speeds.all();
  const now = all.at(-1);
  const most = Math.max(...all);
  const line = all.length === 1 ? [...all, ...all] : all;
  const x = (i: number) => (i * WIDTH) / (line.length - 1);
  const y = (speed: number) => LINE_HEIGHT - 2 - (speed / most) * (LINE_HEIGHT - 4);
  const points = line.map((speed, i) => `${x(i).toFixed(1)},${y(speed).toFixed(1)}`).join(' ');
  const image =
    now === undefined
      ? make('p', { class: 'drawing small none' }, 'The speed is drawn here while a text is written.')
      : drawing(LINE_HEIGHT, 'Tokens per second while the text was written', [
          draw('polyline', { class: 'speed-line', points, 'vector-effect': 'non-scaling-stroke' }),
        ]);
  lineBox.replaceChildren(
    make(
      'dl',
      { class: 'two' },
      figure('Tokens per second now', now === undefined ? '–' : format.rate(now)),
      figure('Fastest', now === undefined ? '–' : format.rate(most)),
      figure('Read per token', perToken === undefined ? '–' : format.bytes(perToken)),
    ),
    image,
  );
}

const figure = (name: string, value: string) => make('div', {}, make('dt', {}, name), make('dd', {}, value));

function drawing(height: number, label: string, children: Node[]): SVGElement {
  const box = { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label };
  return draw('svg', { class: 'drawing', height, ...box }, ...children);
}

function drawTimeline({ plan }: Stats, { now, spans: noted }: Trace): void {
  const spans = sinceLastPause(noted);
  const begin = spans[0]?.begin ?? now;
  const length = Math.max(now - begin, 0.001);
  const x = (time: number) => ((time - begin) / length) * WIDTH;
  const row = ROWS_HEIGHT / Math.max(plan.residency.length, 1);
  const bar = ({ begin: from, end = now }: { begin: number; end?: number }, y: number, height: number) => {
    const width = Math.max(1, x(end) - x(from)).toFixed(2);
    return `M${x(from).toFixed(2)} ${y.toFixed(2)}h${width}v${height.toFixed(2)}h-${width}z`;
  };
  // One element for all bars of a kind: there are hundreds of them, several times a second.
  const bars = (name: string, all: string[]) => draw('path', { class: `span ${name}`, d: all.join('') });
  const all = { begin, end: now };
  const pinned = plan.residency.flatMap((segment, i) => (segment.pinned ? [bar(all, i * row, row)] : []));
  const reads = spans.flatMap((span) =>
    span.segment === undefined ? [] : [bar(span, span.segment * row, Math.max(row, 2))],
  );
  const band = (kind: Span['kind'], y: number) =>
    bars(
      kind,
      spans.filter((span) => span.kind === kind).map((span) => bar(span, y, BAND)),
    );
  const bands = [band('wait', ROWS_HEIGHT + 4), band('compute', ROWS_HEIGHT + 8 + BAND)];
  const height = ROWS_HEIGHT + 8 + 2 * BAND;
  const words = inWords(plan, spans, now, length);
  timeBox.replaceChildren(
    drawing(height, `Segments over time. ${words}`, [bars('kept', pinned), bars('read', reads), ...bands]),
    make(
      'p',
      { class: 'keys' },
      key('kept', 'pinned'),
      key('read', 'read'),
      key('wait', 'waiting'),
      key('compute', 'computing'),
    ),
    make('p', { class: 'small' }, words),
  );
}

/** Returns the spans since the last pause. */
function sinceLastPause(spans: readonly Span[]): readonly Span[] {
  let busy = -Infinity;
  let first = 0;
  for (const [i, { begin, end = Infinity }] of spans.entries()) {
    if (begin - busy > PAUSE) first = i;
    busy = Math.max(busy, end);
  }
  return spans.slice(first);
}

const key = (name: string, words: string) =>
  make('span', { class: 'key' }, make('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }), words);

function inWords(plan: Stats['plan'], spans: readonly Span[], now: number, length: number): string {
  const share = (kind: Span['kind']) => {
    const time = spans.reduce((sum, s) => sum + (s.kind === kind ? (s.end ?? now) - s.begin : 0), 0);
    return format.share(Math.min(time, length), length);
  };
  const reads = spans.filter(({ kind }) => kind === 'read').length;
  return (
    `From top to bottom the file’s ${plan.segments} segments, over the last ${format.milliseconds(length)}: ` +
    `${plan.pinnedSegments} pinned, ${reads} reads, ${share('wait')} waiting, ${share('compute')} computing.`
  );
}
