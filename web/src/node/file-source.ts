// A file, read at the engine's offsets into the engine's memory.
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

import { QSFError } from '../errors.js';
import type { ByteSource, Piece, ReadPiece, SourceStats } from '../sources/source.js';

export class FileSource implements ByteSource {
  readonly size: number;
  onLoaded: (() => void) | undefined;
  readonly #path: string;
  readonly #file: FileHandle;
  #bytes = 0;

  /** Errors are io_error for what is no file, or none that may be read. */
  static async open(path: string): Promise<FileSource> {
    let file: FileHandle | undefined;
    try {
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
    this.#path = path;
    this.#file = file;
    this.size = size;
  }

  async read({ offset, into }: ReadPiece): Promise<void> {
    for (let done = 0; done < into.length;) {
      const got = await this.#file.read(into, done, into.length - done, offset + done).catch((cause: unknown) => {
        throw failure(this.#path, cause);
      });
      if (got.bytesRead === 0) {
        const missing = into.length - done;
        throw new QSFError('truncated', `${this.#path} ends ${missing} bytes before ${offset + into.length}.`);
      }
      done += got.bytesRead;
      this.#bytes += got.bytesRead;
    }
  }

  accepted(): void {}

  rejected(): void {}

  async keep(_pieces: readonly Piece[]): Promise<void> {}

  async restart(): Promise<void> {}

  stats(): SourceStats {
    return {
      network: 0,
      cache: 0,
      blob: this.#bytes,
      requests: 0,
      cacheState: 'off',
      cachedBytes: 0,
      loaded: this.size,
    };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

function failure(path: string, cause: unknown): QSFError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new QSFError('io_error', `${path} could not be read: ${why}`, { cause });
}
