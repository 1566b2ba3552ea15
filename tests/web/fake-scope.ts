// A worker that runs its script's function in this thread; what is transferred is gone here.
import { expect, vi } from 'vitest';

interface Scope {
  onmessage: ((event: { data: unknown }) => void) | undefined;
}

export class ScopeWorker {
  static made: ScopeWorker[] = [];
  static cannotStart: 'throws' | 'fails' | 'takes no message' | false = false;
  /** What the script does. */
  static serve: () => void;
  onmessage: ((event: { data: unknown }) => void) | undefined;
  onerror: ((event: { preventDefault: () => void }) => void) | undefined;
  /** Errors that were not this thread's too. */
  prevented = 0;
  terminated = false;
  /** Gets messages and answers none. */
  isMute = false;
  reads = 0;
  /** What came with the first message. */
  opening: unknown;
  readonly name: string;

  constructor(_address: string, { name }: { name: string }) {
    if (ScopeWorker.cannotStart === 'throws') throw new DOMException('no', 'SecurityError');
    ScopeWorker.made.push(this);
    this.name = name;
    if (ScopeWorker.cannotStart === 'fails') setTimeout(() => this.fail());
    else this.#serve();
  }

  #serve(): void {
    vi.stubGlobal('postMessage', (data: unknown, options: StructuredSerializeOptions) => {
      const told: unknown = structuredClone(data, options);
      setTimeout(() => this.terminated || this.isMute || this.onmessage!({ data: told }));
    });
    ScopeWorker.serve();
  }

  postMessage(data: unknown, transfer?: Transferable[]): void {
    if (ScopeWorker.cannotStart === 'takes no message') throw new DOMException('no', 'DataCloneError');
    if (transfer?.length) this.reads++;
    this.opening ??= data;
    const told: unknown = transfer ? structuredClone(data, { transfer }) : data;
    setTimeout(() => {
      if (this.terminated) return;
      try {
        (globalThis as unknown as Scope).onmessage?.({ data: told });
      } catch {
        this.fail();
      }
    });
  }

  fail(): void {
    this.onerror!({ preventDefault: () => void this.prevented++ });
    expect(this.prevented).toBe(1);
  }

  terminate(): void {
    this.terminated = true;
  }
}

/** Puts it where a worker has workers. */
export function installScopeWorker(serve: () => void): void {
  Object.assign(ScopeWorker, { made: [], cannotStart: false, serve });
  vi.stubGlobal('Worker', ScopeWorker);
  vi.stubGlobal('importScripts', undefined);
  vi.stubGlobal('onmessage', undefined);
}
