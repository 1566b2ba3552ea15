// The project's own text files.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
});

/** Paths of every file that is, or could be, in the repository. */
export const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));

export const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Paths with one of these endings, outside of data. */
export const sources = (...endings: string[]) =>
  paths.filter((path) => endings.some((ending) => path.endsWith(ending)) && !/^(models|tests\/data)\//.test(path));
