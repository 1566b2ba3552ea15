// Numbers as text for readers. Memory has binary units, because a WebAssembly page is 64 KiB.

const KIB = 1024;
const MIB = 1024 * 1024;

/** Returns a size such as "2.31 MiB", "96.0 KiB" or "12 B". */
export function bytes(n: number): string {
  if (n >= MIB) return `${(n / MIB).toFixed(2)} MiB`;
  if (n >= KIB) return `${(n / KIB).toFixed(1)} KiB`;
  return `${n} B`;
}

/** Returns a budget, such as "3.5 MiB". The slider sets only quarters of a MiB. */
export function budget(n: number): string {
  return `${Number((n / MIB).toFixed(2))} MiB`;
}

/** Returns an exact size, such as "4,980,736 bytes". The browser's own tables of languages take long to begin. */
export function exact(n: number): string {
  return `${String(n).replace(/\B(?=(\d{3})+$)/g, ',')} bytes`;
}

export function share(part: number, whole: number): string {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  return percent > 0 && percent < 0.1 ? '< 0.1 %' : `${percent.toFixed(1)} %`;
}

export function rate(perSecond: number): string {
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

export function milliseconds(ms: number): string {
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** Returns a time such as "45 s" or "3 min". */
export function duration(seconds: number): string {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
}

/** Returns a size of a file as the Hub states it, such as "145 MB". */
export function fileSize(n: number): string {
  return n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : `${(n / 1e6).toFixed(n < 10e6 ? 1 : 0)} MB`;
}

/** Returns a part of a file and its size in one unit, such as "34.0 of 145 MB". */
export function partOf(part: number, whole: number): string {
  return `${whole >= 1e9 ? (part / 1e9).toFixed(2) : (part / 1e6).toFixed(1)} of ${fileSize(whole)}`;
}

/** Returns a number of weights, such as "135 M". */
export function weights(n: number): string {
  return n >= 1e9 ? `${Number((n / 1e9).toFixed(2))} B` : `${Math.round(n / 1e6)} M`;
}
