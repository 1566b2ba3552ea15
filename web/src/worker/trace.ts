// The last activities of the worker: reads, waits for them, and computation.
import type { Span, Trace } from '../types.js';

/** Spans that are remembered. */
const LAST = 512;

interface Noted {
  kind: Span['kind'];
  begin: number;
  end: number | undefined;
  /** For a read, the offset of its bytes in the file. */
  offset: number;
}

export class Tracer {
  /** The last spans. A new span replaces the one that began LAST spans before it. */
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

  /** Returns the spans in the order of their beginnings, without reads of anything but a segment. */
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
