// Two kinds of charts in the page's colours; drawn anew when those or the window change.
import uPlot from 'uplot';
import type { Options, Series } from 'uplot';

export interface Chart {
  title: string;
  note: string;
  wide?: boolean;
  /** Names under the bars, or numbers under the lines. */
  at: string[] | number[];
  series: { label: string; values: (number | null)[] }[];
}

const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const show = (_: uPlot, value: number | null) =>
  value === null ? '–' : value >= 100 ? value.toFixed(0) : value.toPrecision(3);

function options({ at, series }: Chart, width: number): Options {
  const bars = typeof at[0] === 'string';
  const line = { stroke: color('--line'), width: 1 };
  const axis = { stroke: color('--faint'), grid: line, ticks: line };
  const turned = bars && at.length > 6;
  const drawn = series.map(({ label }, i): Series => {
    const stroke = color(`--color-${String(i % 6)}`);
    if (!bars) return { label, stroke, width: 2, points: { show: true, size: 6 }, value: show };
    return {
      label,
      stroke,
      fill: stroke,
      points: { show: false },
      paths: uPlot.paths.bars({ size: [0.8, 60] }),
      value: show,
    };
  });
  return {
    width,
    height: turned ? 360 : 280,
    scales: {
      x: bars ? { time: false, range: () => [-0.6, at.length - 0.4] } : { time: false, distr: 3, log: 2 },
      y: { range: (_, __, most) => [0, most * 1.1] },
    },
    axes: [
      bars
        ? {
            ...axis,
            splits: at.map((_, i) => i),
            values: (_, splits) => splits.map((i) => String(at[i] ?? '')),
            rotate: turned ? -60 : 0,
            size: turned ? 110 : 40,
            grid: { ...line, width: 0 },
          }
        : { ...axis, splits: at as number[] },
      { ...axis, size: 60 },
    ],
    series: [{ label: '', value: (_, i) => (i === null ? '–' : String(bars ? at[i] : i)) }, ...drawn],
    cursor: { drag: { x: false } },
  };
}

export function draw(charts: Chart[], into: HTMLElement): void {
  const places = charts.map((chart) => {
    const figure = document.createElement('figure');
    figure.classList.toggle('wide', chart.wide === true);
    const caption = document.createElement('figcaption');
    const note = document.createElement('small');
    caption.textContent = chart.title;
    note.textContent = chart.note;
    caption.append(note);
    figure.append(caption);
    into.append(figure);
    return { chart, figure, plot: undefined as uPlot | undefined };
  });
  const redraw = () => {
    for (const place of places) {
      const { chart, figure } = place;
      place.plot?.destroy();
      const style = getComputedStyle(figure);
      const width = figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      const x = chart.at.map((value, i) => (typeof value === 'number' ? value : i));
      place.plot = new uPlot(options(chart, width), [x, ...chart.series.map(({ values }) => values)], figure);
    }
  };
  redraw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  addEventListener('resize', redraw);
}
