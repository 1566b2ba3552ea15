// The origin's private file system and Web Locks in memory, as far as the cache uses them.
import { vi } from 'vitest';

/** Whether files can have several handles, as in Chromium. */
let hasModes = false;

export class FakeFile {
  readonly kind = 'file';
  bytes = new Uint8Array();
  changed: number;
  /** Handles that are open. */
  open = 0;
  /** Which of them cannot read, from 1. */
  broken = 0;
  /** Which of them gives less than is asked for, from 1. */
  short = 0;
  /** Has no handle for anybody else. */
  isTaken = false;
  /** Called for each read. */
  onRead: (() => void) | undefined;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    this.changed = now();
  }

  async getFile(): Promise<File> {
    return new File([this.bytes.slice()], 'file', { lastModified: this.changed });
  }

  async createSyncAccessHandle({ mode }: { mode: string }) {
    if (this.isTaken || (this.open > 0 && !(hasModes && mode === 'readwrite-unsafe')))
      throw new DOMException('open', 'NoModificationAllowedError');
    const nth = ++this.open;
    return {
      ...(hasModes && { mode }),
      read: (into: Uint8Array, { at }: { at: number }): number => {
        this.onRead?.();
        if (nth === this.broken) throw new DOMException('closed', 'InvalidStateError');
        const got = this.bytes.subarray(at, at + into.length - Number(nth === this.short));
        into.set(got);
        return got.length;
      },
      write: (from: Uint8Array, { at }: { at: number }): number => {
        const all = new Uint8Array(Math.max(this.bytes.length, at + from.length));
        all.set(this.bytes);
        all.set(from, at);
        this.bytes = all;
        this.changed = this.#now();
        return from.length;
      },
      truncate: (size: number): void => {
        const all = new Uint8Array(size);
        all.set(this.bytes.subarray(0, size));
        this.bytes = all;
      },
      getSize: (): number => this.bytes.length,
      flush: (): void => undefined,
      close: (): void => void this.open--,
    };
  }
}

export class FakeFolder {
  readonly kind = 'directory';
  readonly name: string;
  readonly inside = new Map<string, FakeFolder | FakeFile>();
  readonly #now: () => number;

  constructor(name: string, now: () => number) {
    this.name = name;
    this.#now = now;
  }

  async getDirectoryHandle(name: string, { create = false } = {}): Promise<FakeFolder> {
    return this.#get(name, create, () => new FakeFolder(name, this.#now)) as FakeFolder;
  }

  async getFileHandle(name: string, { create = false } = {}): Promise<FakeFile> {
    return this.#get(name, create, () => new FakeFile(this.#now)) as FakeFile;
  }

  async removeEntry(name: string): Promise<void> {
    if (!this.inside.delete(name)) throw new DOMException('gone', 'NotFoundError');
  }

  async *values() {
    yield* this.inside.values();
  }

  #get(name: string, create: boolean, make: () => FakeFolder | FakeFile) {
    const found = this.inside.get(name) ?? (create ? make() : undefined);
    if (!found) throw new DOMException('gone', 'NotFoundError');
    this.inside.set(name, found);
    return found;
  }
}

/** The file of the one model that is kept. */
export function modelFile(top: FakeFolder): FakeFile {
  const [folder] = (top.inside.get('qsf') as FakeFolder).inside.values();
  return (folder as FakeFolder).inside.get('model') as FakeFile;
}

type Held = (lock: object | null) => Promise<void> | undefined;

class FakeLocks {
  readonly #held = new Set<string>();

  async request(name: string, options: { signal?: AbortSignal; ifAvailable?: boolean }, work: Held): Promise<void> {
    while (this.#held.has(name)) {
      if (options.ifAvailable) return void (await work(null));
      options.signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    this.#held.add(name);
    try {
      await work({});
    } finally {
      this.#held.delete(name);
    }
  }
}

/** Puts them where a worker has them; files are changed at `now`. Gives the folder of all. */
export function installFakeOpfs(now: () => number, storage: object = {}, modes = false): FakeFolder {
  hasModes = modes;
  const top = new FakeFolder('', now);
  vi.stubGlobal('navigator', {
    storage: { getDirectory: async () => top, ...storage },
    locks: new FakeLocks(),
  });
  vi.stubGlobal('location', { href: 'https://page.test/demo/' });
  vi.stubGlobal(
    'FileSystemFileHandle',
    class {
      createSyncAccessHandle(): void {}
    },
  );
  return top;
}
