// The origin's private file system and Web Locks in memory, as far as the cache uses them, with what a browser may do to it:
// a write or a read moves fewer bytes than it was given, room ends, and what was not flushed is lost in part, in any order.
import { vi } from 'vitest';

import { FakeLocks } from './fake-locks.js';

/** Bytes that one write stores at most, unless a test says otherwise: less than a segment or a run has. */
const AT_ONCE = 48 * 1024;

/** What all files share. */
class Disk {
  readonly now: () => number;
  /** Whether files can have several handles, as in Chromium. */
  readonly hasModes: boolean;
  /** Bytes that all files may have together. */
  quota = Infinity;
  /** What a write does for which there is no room: a browser may store what fits. */
  full: 'throws' | 'stores a part' = 'throws';
  /** Bytes that one write, or one read, moves at most. */
  written = AT_ONCE;
  read = Infinity;
  /** Writes, truncations and flushes so far, and before which of them the browser is killed. */
  changes = 0;
  killedAt = Infinity;
  /** Files that are there. */
  readonly files: FakeFile[] = [];
  /** Handles of an earlier life are closed. */
  life = 0;

  constructor(now: () => number, hasModes: boolean) {
    this.now = now;
    this.hasModes = hasModes;
  }

  get room(): number {
    return this.quota - this.files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** Counts a change; throws if the browser is killed before it. */
  change(): void {
    if (this.changes >= this.killedAt) throw new DOMException('killed', 'InvalidStateError');
    this.changes++;
  }
}

/** Done to a file and not flushed: a write, or a new size. */
type Change = { at: number; bytes: Uint8Array } | { size: number };

export class FakeFile {
  readonly kind = 'file';
  name: string;
  /** The folder that it is in. */
  readonly folder: FakeFolder;
  changed: number;
  /** Handles that are open. */
  open = 0;
  /** Which of them cannot read, from 1. */
  broken = 0;
  /** Which of them gives less than is asked for, from 1. */
  short = 0;
  /** Has no handle for anybody else. */
  isTaken = false;
  /** How many Files of it, from now on, cannot be read, because it is written before they are. */
  stale = 0;
  /** Called for each read. */
  onRead: (() => void) | undefined;
  readonly #disk: Disk;
  #memory = new Uint8Array();
  #size = 0;
  #flushed = new Uint8Array();
  #unflushed: Change[] = [];

  constructor(name: string, folder: FakeFolder) {
    this.name = name;
    this.folder = folder;
    this.#disk = folder.disk;
    this.changed = folder.disk.now();
  }

  /** As in a browser, nothing that is open, and nothing onto another file. */
  async move(into: FakeFolder, name: string): Promise<void> {
    this.#disk.change();
    if (this.open > 0 || into.inside.has(name)) throw new DOMException('taken', 'NoModificationAllowedError');
    this.folder.inside.delete(this.name);
    this.name = name;
    into.inside.set(name, this);
  }

  /** As handles see them. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#memory.subarray(0, this.#size);
  }

  /** What a crash leaves: what was flushed, and of the rest those changes that `lasts` says. */
  crash(lasts: (nth: number) => boolean): void {
    const changes = this.#unflushed;
    this.#memory = this.#flushed.slice();
    this.#size = this.#memory.length;
    changes.filter((_, i) => lasts(i)).forEach((change) => this.#apply(change));
    this.#settle();
    this.open = 0;
  }

  async getFile(): Promise<File> {
    const file = new File([this.bytes.slice()], 'file', { lastModified: this.changed });
    if (this.stale > 0) {
      this.stale--;
      file.arrayBuffer = () => Promise.reject(new DOMException('written', 'NotReadableError'));
    }
    return file;
  }

  async createSyncAccessHandle({ mode }: { mode: string }) {
    const disk = this.#disk;
    if (this.isTaken || (this.open > 0 && !(disk.hasModes && mode === 'readwrite-unsafe')))
      throw new DOMException('open', 'NoModificationAllowedError');
    const nth = ++this.open;
    const { life } = disk;
    let isOpen = true;
    const check = () => {
      if (!isOpen || life !== disk.life) throw new DOMException('closed', 'InvalidStateError');
    };
    const change = (change: Change) => {
      this.#unflushed.push(change);
      this.#apply(change);
      this.changed = disk.now();
    };
    return {
      ...(disk.hasModes && { mode }),
      read: (into: Uint8Array, { at }: { at: number }): number => {
        this.onRead?.();
        check();
        if (nth === this.broken) throw new DOMException('closed', 'InvalidStateError');
        const most = Math.min(into.length - Number(nth === this.short), disk.read);
        const got = this.bytes.subarray(at, at + most);
        into.set(got);
        return got.length;
      },
      write: (from: Uint8Array, { at }: { at: number }): number => {
        check();
        disk.change();
        const fits = this.bytes.length + disk.room - at;
        if (from.length > fits && disk.full === 'throws') throw new DOMException('full', 'QuotaExceededError');
        const bytes = from.slice(0, Math.max(0, Math.min(fits, disk.written)));
        if (bytes.length > 0) change({ at, bytes });
        return bytes.length;
      },
      truncate: (size: number): void => {
        check();
        disk.change();
        change({ size });
      },
      getSize: (): number => this.bytes.length,
      flush: (): void => {
        check();
        disk.change();
        this.#settle();
      },
      close: (): void => {
        if (isOpen && life === disk.life) this.open--;
        isOpen = false;
      },
    };
  }

  #apply(change: Change): void {
    const end = 'size' in change ? change.size : Math.max(this.#size, change.at + change.bytes.length);
    if (end > this.#memory.length) {
      const memory = new Uint8Array(Math.max(end, 2 * this.#memory.length));
      memory.set(this.bytes);
      this.#memory = memory;
    }
    // What is added again after a cut is zero.
    if (end < this.#size) this.#memory.fill(0, end, this.#size);
    this.#size = end;
    if ('bytes' in change) this.#memory.set(change.bytes, change.at);
  }

  #settle(): void {
    this.#flushed = this.bytes.slice();
    this.#unflushed = [];
  }
}

export class FakeFolder {
  readonly kind = 'directory';
  readonly name: string;
  readonly inside = new Map<string, FakeFolder | FakeFile>();
  readonly disk: Disk;

  constructor(name: string, disk: Disk) {
    this.name = name;
    this.disk = disk;
  }

  async getDirectoryHandle(name: string, { create = false } = {}): Promise<FakeFolder> {
    return this.#get(name, create, () => new FakeFolder(name, this.disk)) as FakeFolder;
  }

  async getFileHandle(name: string, { create = false } = {}): Promise<FakeFile> {
    const make = () => {
      const file = new FakeFile(name, this);
      this.disk.files.push(file);
      return file;
    };
    return this.#get(name, create, make) as FakeFile;
  }

  /** As in a browser, nothing of which a handle is open. */
  async removeEntry(name: string): Promise<void> {
    const entry = this.inside.get(name);
    if (!entry) throw new DOMException('gone', 'NotFoundError');
    const gone = filesOf(entry);
    if (gone.some(({ open }) => open > 0)) throw new DOMException('open', 'NoModificationAllowedError');
    this.inside.delete(name);
    for (const file of gone) this.disk.files.splice(this.disk.files.indexOf(file), 1);
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

const filesOf = (entry: FakeFolder | FakeFile): FakeFile[] =>
  entry.kind === 'file' ? [entry] : [...entry.inside.values()].flatMap(filesOf);

const fileOf = (top: FakeFolder, name: string): FakeFile => {
  const [folder] = (top.inside.get('qsf') as FakeFolder).inside.values();
  return (folder as FakeFolder).inside.get(name) as FakeFile;
};
/** The file, and the journal, of the one model that is kept. */
export const modelFile = (top: FakeFolder): FakeFile => fileOf(top, 'model');
export const journalFile = (top: FakeFolder): FakeFile => fileOf(top, 'journal');

/** What the machine's end leaves of all files, as `lasts` says of each change that was not flushed; nobody holds a lock. */
export function crash(top: FakeFolder, lasts: (file: string, nth: number) => boolean): void {
  for (const file of top.disk.files) file.crash((nth) => lasts(file.name, nth));
  top.disk.life++;
  top.disk.killedAt = Infinity;
  (navigator as { locks: unknown }).locks = new FakeLocks();
}

/** Puts them where a worker has them; files are changed at `now`. Gives the folder of all. */
export function installFakeOpfs(now: () => number, storage: object = {}, modes = false): FakeFolder {
  const top = new FakeFolder('', new Disk(now, modes));
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
