// What the worker did in the last moments: reads, waiting for them, computing.
import type { Span, Trace } from './types.js';

/** Spans that are remembered. */
const LAST = 512;

interface Noted {
  kind: Span['kind'];
  begin: number;
  end: number | undefined;
  /** Of a read's bytes in the file. */
  offset: number;
}

export class Tracer {
  /** The last spans, each in the place of the one that began LAST before it. */
  readonly #spans: Noted[] = [];
  #next = 0;

  begin(kind: Span['kind'], offset = 0): Noted {
    const noted = { kind, begin: performance.now(), end: undefined, offset };
    this.#spans[this.#next++ % LAST] = noted;
    return noted;
  }

  end(noted: Noted): void {
    noted.end = performance.now();
  }

  /** The spans in the order in which they began; reads of anything but a segment are left out. */
  trace(segments: readonly { offset: number }[]): Trace {
    const index = new Map(segments.map(({ offset }, i) => [offset, i]));
    const first = this.#next % Math.max(this.#spans.length, 1);
    const spans: Span[] = [];
    for (const { kind, begin, end, offset } of [...this.#spans.slice(first), ...this.#spans.slice(0, first)]) {
      const segment = kind === 'read' ? index.get(offset) : undefined;
      if (kind === 'read' && segment === undefined) continue;
      spans.push({ kind, begin, ...(end !== undefined && { end }), ...(segment !== undefined && { segment }) });
    }
    return { now: performance.now(), spans };
  }
}
