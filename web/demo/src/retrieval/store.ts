// The visitor's files and the vectors of their passages, in the browser's database. Without one, they last as long as the
// page.

/** A file as text. */
export interface StoredFile {
  id: string;
  name: string;
  /** Bytes of the file itself. */
  bytes: number;
  /** Milliseconds since 1970 when it was added. */
  time: number;
  text: string;
}

/** The passages of a file, and their vectors by one model. */
export interface StoredVectors {
  file: string;
  model: string;
  /** The start and the end of each passage in the text. */
  bounds: Uint32Array;
  /** `dim` values for each passage. */
  values: Float32Array;
  dim: number;
}

export interface Store {
  /** Whether the files are there at the next visit. */
  readonly keeps: boolean;
  files(): Promise<StoredFile[]>;
  vectors(model: string): Promise<StoredVectors[]>;
  /** Each rejects if the browser has no room. */
  putFile(file: StoredFile): Promise<void>;
  /** Keeps nothing of a file that was removed, also by another tab. */
  putVectors(vectors: StoredVectors): Promise<void>;
  /** Removes a file and its vectors by all models. */
  remove(file: string): Promise<void>;
}

const NAME = 'qsf-files';
const VERSION = 1;
/** Milliseconds in which the database opens. */
const PATIENCE = 5000;

/** Opens the database; a browser that refuses it gives one that keeps nothing. */
export async function openStore(): Promise<Store> {
  try {
    return databaseStore(await openDatabase());
  } catch {
    return memoryStore();
  }
}

/** Returns a store that keeps nothing. */
export function memoryStore(): Store {
  const files = new Map<string, StoredFile>();
  const vectors = new Map<string, StoredVectors>();
  return {
    keeps: false,
    files: async () => [...files.values()],
    vectors: async (model) => [...vectors.values()].filter((one) => one.model === model),
    putFile: async (file) => void files.set(file.id, file),
    putVectors: async (one) => {
      if (files.has(one.file)) vectors.set(JSON.stringify([one.file, one.model]), one);
    },
    remove: async (id) => {
      files.delete(id);
      for (const [key, one] of vectors) if (one.file === id) vectors.delete(key);
    },
  };
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(NAME, VERSION);
    opening.onupgradeneeded = () => {
      const database = opening.result;
      database.createObjectStore('files', { keyPath: 'id' });
      database.createObjectStore('vectors', { keyPath: ['file', 'model'] }).createIndex('model', 'model');
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(faultOf(opening));
    // Some browsers never answer when their database is damaged.
    setTimeout(() => reject(new Error('the browser does not open its database')), PATIENCE);
  });
}

function databaseStore(database: IDBDatabase): Store {
  const read = async <T>(name: string, ask: (store: IDBObjectStore) => IDBRequest<T>) => {
    const asked = ask(database.transaction(name).objectStore(name));
    return new Promise<T>((resolve, reject) => {
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(faultOf(asked));
    });
  };
  const change = async (names: string[], write: (stores: IDBObjectStore[]) => void) => {
    const work = database.transaction(names, 'readwrite');
    write(names.map((name) => work.objectStore(name)));
    return new Promise<void>((resolve, reject) => {
      work.oncomplete = () => resolve();
      work.onabort = () => reject(faultOf(work));
    });
  };
  return {
    keeps: true,
    files: () => read('files', (files) => files.getAll() as IDBRequest<StoredFile[]>),
    vectors: (model) => read('vectors', (all) => all.index('model').getAll(model) as IDBRequest<StoredVectors[]>),
    putFile: (file) => change(['files'], ([files]) => void files!.put(file)),
    putVectors: (one) =>
      change(['files', 'vectors'], ([files, vectors]) => {
        const asked = files!.getKey(one.file);
        asked.onsuccess = () => void (asked.result !== undefined && vectors!.put(one));
      }),
    remove: (id) =>
      change(['files', 'vectors'], ([files, vectors]) => {
        files!.delete(id);
        // A list is after every text, so this has the vectors by all models.
        vectors!.delete(IDBKeyRange.bound([id], [id, []]));
      }),
  };
}

const faultOf = ({ error }: { error: DOMException | null }): Error =>
  error?.name === 'QuotaExceededError'
    ? new Error('the browser has no room for this file; remove others')
    : (error ?? new Error('the browser ended the change of its database'));
