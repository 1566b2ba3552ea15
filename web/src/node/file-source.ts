// A file, read at the engine's offsets into the engine's memory.
import { open, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

import { QSFError, messageOf } from '../errors.js';
import { LocalSource, checkEnd } from '../sources/local.js';
import type { ReadPiece } from '../sources/source.js';

export class FileSource extends LocalSource {
  readonly #path: string;
  readonly #file: FileHandle;

  /** Opens a file. Rejects with io_error if it is not a regular file or cannot be read. */
  static async open(path: string): Promise<FileSource> {
    let file: FileHandle | undefined;
    try {
      if (!(await stat(path)).isFile()) throw new Error('it is no file'); // to open a pipe would wait for a writer
      file = await open(path);
      const about = await file.stat();
      if (!about.isFile()) throw new Error('it is no file');
      return new FileSource(path, file, about.size);
    } catch (cause) {
      await file?.close();
      throw failure(path, cause);
    }
  }

  private constructor(path: string, file: FileHandle, size: number) {
    super(size);
    this.#path = path;
    this.#file = file;
  }

  async read({ offset, into }: ReadPiece): Promise<void> {
    for (let done = 0; done < into.length;) {
      const got = await this.#file.read(into, done, into.length - done, offset + done).catch((cause: unknown) => {
        throw failure(this.#path, cause);
      });
      if (got.bytesRead === 0) checkEnd(this.#path, offset + done, offset, into.length);
      done += got.bytesRead;
      this.bytes += got.bytesRead;
    }
  }

  override async close(): Promise<void> {
    await this.#file.close();
  }
}

function failure(path: string, cause: unknown): QSFError {
  const why = messageOf(cause);
  return new QSFError('io_error', `${path} could not be read: ${why}`, { cause });
}
