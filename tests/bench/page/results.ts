// The results as the scripts left them, and what is drawn of them.
export interface Run {
  model: string;
  engine: string;
  threads: number;
  prefill: number[];
  decode: number[];
}
export interface Kernel {
  name: string;
  'GB/s'?: number[];
  'GMAC/s'?: number[];
  share?: number[];
}
interface Head {
  machine: { cpu: string; processors: number; commit: string; date: string; load: number };
  command: string;
}
type Peers = Head & { native: Run[]; browser?: { browser: string; rows: Run[] } };
/** A model that is several times its budget; ways of reading it, each with its runs. */
export interface Streamed {
  model: string;
  budget: number;
  ways: Record<string, { rate: number }[]>;
}
type Streaming = Head & { rows: Streamed[] };
type Kernels = Head & { rows: Kernel[] };

const files = import.meta.glob<Head>('../../../docs/reference/benchmarks/*.json', { eager: true, import: 'default' });
const read = <T>(name: string) => files[`../../../docs/reference/benchmarks/${name}.json`] as T | undefined;

export const heads = Object.values(files);
export const runs = (() => {
  const peers = read<Peers>('peers');
  return peers ? [...peers.native, ...(peers.browser?.rows ?? [])] : [];
})();
export const streamed = read<Streaming>('streaming')?.rows ?? [];
export const kernels = read<Kernels>('kernels')?.rows ?? [];

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
