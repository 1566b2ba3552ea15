// Packages that only one part of the work needs, each in a folder with its own lock file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { run } from './process.mjs';

/** Installs the packages of a folder's lock file, unless they are installed. */
export async function installLocked(folder) {
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  const stamp = join(folder, 'node_modules', '.qsf-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
  writeFileSync(stamp, lock);
}
