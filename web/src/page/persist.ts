// The request to the browser to keep models even when the disk is full.

let asked: Promise<boolean> | undefined;

/** Returns whether the browser grants it. Asks once in a page, and not if it was granted before. */
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
