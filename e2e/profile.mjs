// The folder in which a browser keeps what is its user's.
import { rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/**
 * Removes it. Processes that the browser has started may write there for a moment after it has ended, and rmSync alone does
 * not look again for what came meanwhile.
 * @param {string} folder
 */
export async function removeProfile(folder) {
  for (let tries = 100; ; await setTimeout(100)) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (--tries === 0) throw error;
    }
  }
}
