import 'uplot/dist/uPlot.min.css';

import { draw } from './charts.js';
import type { Chart } from './charts.js';
import { heads, kernels, median, runs, streamed } from './results.js';

/** One chart per model: every engine's prefill, and another for decode, which is on another scale. */
function ofModels(): Chart[] {
  const models = [...new Set(runs.map(({ model }) => model))];
  return models.flatMap((model) =>
    (['prefill', 'decode'] as const).map((what) => {
      const rows = runs.filter((run) => run.model === model);
      return {
        title: `${model}, ${what}`,
        note: 'tokens per second, medians',
        at: rows.map(({ engine, threads }) => (threads === 1 ? engine : `${engine} ×${String(threads)}`)),
        series: [{ label: 'tokens/s', values: rows.map((row) => median(row[what])) }],
      };
    }),
  );
}

const ofStreaming = () =>
  streamed.map(({ model, budget, ways }): Chart => {
    const values = Object.values(ways).map((all) => median(all.map(({ rate }) => rate)));
    return {
      title: `${model} in ${String(budget)} MiB`,
      note: 'tokens per second, medians',
      at: Object.keys(ways),
      series: [{ label: 'tokens/s', values }],
    };
  });

/** Figures of the products of 4096 x 4096 weights from memory on one thread, by format, of the fastest instructions. */
function products(columns: number, key: 'GB/s' | 'GMAC/s' | 'share'): Map<string, number> {
  const found = new Map<string, number>();
  for (const row of kernels) {
    const [kind, format = '', , ...rest] = row.name.split('/');
    const values = row[key];
    const wanted = `4096x4096/memory/columns:${String(columns)}/threads:1`;
    if (kind === 'matmul' && rest.join('/') === wanted && values) found.set(format, median(values));
  }
  return found;
}

function ofKernels(): Chart[] {
  const share = products(1, 'share');
  if (share.size === 0) return [];
  const formats = [...share.keys()];
  const columns = [1, 4, 8, 32, 128];
  const compared = ['f16', '8bit', '4bit', 'q4_0', 'q4_k', '2bit'].filter((format) => share.has(format));
  const speed = products(1, 'GB/s');
  return [
    {
      title: 'Products of one column from memory',
      note: 'GB of weights per second, one thread',
      wide: true,
      at: formats,
      series: [{ label: 'GB/s', values: formats.map((format) => speed.get(format) ?? null) }],
    },
    {
      title: 'Share of the memory’s speed',
      note: 'of what one thread reads, in percent',
      wide: true,
      at: formats,
      series: [{ label: '%', values: formats.map((format) => share.get(format)! * 100) }],
    },
    {
      title: 'Products by columns of activations',
      note: 'billions of multiply-adds per second, one thread',
      wide: true,
      at: columns,
      series: compared.map((label) => ({
        label,
        values: columns.map((n) => products(n, 'GMAC/s').get(label) ?? null),
      })),
    },
  ];
}

const machine = document.querySelector<HTMLElement>('#machine')!;
machine.textContent = heads
  .map(({ machine: m, command }) => {
    const busy = m.load > 0.7 ? `, busy (load ${m.load.toFixed(1)})` : '';
    return `${command}: ${m.cpu}, ${String(m.processors)} cores, ${m.date}, ${m.commit}${busy}`;
  })
  .join('\n');
draw([...ofModels(), ...ofStreaming(), ...ofKernels()], document.querySelector<HTMLElement>('#charts')!);
