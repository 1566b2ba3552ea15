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

/** Returns an exact size, such as "4,980,736 bytes". */
export function exact(n: number): string {
  return `${n.toLocaleString('en')} bytes`;
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
