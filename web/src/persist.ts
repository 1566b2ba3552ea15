// Asking the browser to keep what is kept, also when the disk is full.

let asked: Promise<boolean> | undefined;

/** Asks once in a page, unless it was granted before; whether it is. */
export function askToPersist(): Promise<boolean> {
  return (asked ??= ask());
}

async function ask(): Promise<boolean> {
  const storage: Partial<StorageManager> = globalThis.navigator?.storage ?? {};
  try {
    return ((await storage.persisted?.()) ?? false) || ((await storage.persist?.()) ?? false);
  } catch {
    return false;
  }
}
