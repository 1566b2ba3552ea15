// Numbers as a reader wants them. Memory is in binary units (a WebAssembly page is 64 KiB), always saying so.

const KIB = 1024;
const MIB = 1024 * 1024;

/** "2.31 MiB", "96.0 KiB", "12 B": three significant digits or two decimals, whichever is more. */
export function bytes(n: number): string {
  if (n >= MIB) return `${(n / MIB).toFixed(2)} MiB`;
  if (n >= KIB) return `${(n / KIB).toFixed(1)} KiB`;
  return `${n} B`;
}

/** A budget, which the slider only sets to quarters of a MiB: "3.5 MiB". */
export function budget(n: number): string {
  return `${Number((n / MIB).toFixed(2))} MiB`;
}

/** "4,980,736 bytes", for where the number must be exact. */
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
