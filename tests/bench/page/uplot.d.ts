// What is used of uPlot, so that the types hold without its package.
declare module 'uplot' {
  export interface Axis {
    stroke?: string;
    grid?: { stroke: string; width: number };
    ticks?: { stroke: string; width: number };
    values?: (plot: uPlot, splits: number[]) => string[];
    splits?: number[];
    rotate?: number;
    size?: number;
    label?: string;
  }
  export interface Series {
    label?: string;
    stroke?: string;
    fill?: string;
    width?: number;
    points?: { show?: boolean; size?: number };
    paths?: unknown;
    value?: (plot: uPlot, value: number | null) => string;
  }
  export interface Options {
    width: number;
    height: number;
    scales?: Record<
      string,
      { time?: boolean; distr?: number; log?: number; range?: (plot: uPlot, least: number, most: number) => number[] }
    >;
    axes: Axis[];
    series: Series[];
    cursor?: { show?: boolean; drag?: { x: boolean } };
    legend?: { show: boolean };
  }
  export default class uPlot {
    constructor(options: Options, data: (number | null)[][], into: HTMLElement);
    destroy(): void;
    static paths: { bars(options: { size: [number, number] }): unknown };
  }
}
