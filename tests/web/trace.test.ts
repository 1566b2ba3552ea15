import { afterEach, describe, expect, it, vi } from 'vitest';

import { Tracer } from '../../web/src/worker/trace.js';

afterEach(() => vi.restoreAllMocks());

describe('a trace', () => {
  const segments = [{ offset: 100 }, { offset: 300 }];
  const clock = () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now++);
  };

  it('tells what began and ended when, and of which segment', () => {
    clock();
    const tracer = new Tracer();
    const compute = tracer.begin('compute');
    const tables = tracer.begin('read', 0);
    const read = tracer.begin('read', 300);
    tracer.end(compute);
    tracer.end(tables);
    tracer.begin('wait');
    tracer.end(read);
    expect(tracer.trace(segments)).toEqual({
      now: 7,
      spans: [
        { kind: 'compute', begin: 0, end: 3 },
        { kind: 'read', begin: 2, end: 6, segment: 1 },
        { kind: 'wait', begin: 5 },
      ],
    });
  });

  it('forgets what is long ago, and keeps the order', () => {
    clock();
    const tracer = new Tracer();
    for (let i = 0; i < 700; i++) tracer.begin('compute');
    const { spans } = tracer.trace(segments);
    expect(spans.map(({ begin }) => begin)).toEqual(Array.from({ length: 512 }, (_, i) => 188 + i));
  });

  it('of nothing is empty', () => {
    expect(new Tracer().trace(segments).spans).toEqual([]);
  });
});
