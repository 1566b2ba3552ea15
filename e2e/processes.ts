// What the system tells of a browser's processes.
import { readFileSync, readdirSync } from 'node:fs';

/** A line of a process's status; undefined of one that has ended. */
export function status(pid: number, name: string): number | undefined {
  try {
    const text = readFileSync(`/proc/${String(pid)}/status`, 'utf8');
    return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
  } catch {
    return undefined;
  }
}

const isRenderer = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').includes('--type=renderer');
  } catch {
    return false;
  }
};

/** The renderers among a process's descendants. */
export function renderersOf(root: number): number[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const parents = new Map(all.map((pid) => [pid, status(pid, 'PPid')]));
  const isBelow = (pid: number | undefined): boolean =>
    pid === root || (pid !== undefined && pid > 1 && isBelow(parents.get(pid)));
  return all.filter((pid) => isBelow(pid) && isRenderer(pid));
}

/** Threads of workers in the renderers below a process. */
export function workerThreadsOf(root: number): number {
  const names = renderersOf(root).flatMap((pid) => {
    try {
      return readdirSync(`/proc/${String(pid)}/task`).map((thread) =>
        readFileSync(`/proc/${String(pid)}/task/${thread}/comm`, 'utf8'),
      );
    } catch {
      return []; // it has ended
    }
  });
  return names.filter((name) => name.startsWith('DedicatedWorker')).length;
}
