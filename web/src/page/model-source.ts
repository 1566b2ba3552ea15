// Models that callers give: addresses, files, lists and directories of files, and bytes; and the types of their weights.
import { quantTypes } from '../boundary.gen.js';
import type { LoadRequest, NamedFile } from '../contract.js';
import type { DraftModel } from '../draft-types.js';
import { QSFError, messageOf } from '../errors.js';
import { hubAddress, hubName } from './hub.js';
import { absolute } from '../platform.js';
import { checkKind, checkKnown, kindOf, shown } from './options.js';
import type { ModelSource } from '../types.js';

/** Returns an absolute address, the name of a repository, a file, or a copy of bytes for the worker. */
export async function sourceOf(source: ModelSource, name = 'the model'): Promise<LoadRequest['source']> {
  // A message of Node loses the name of a File, which parts of a model need.
  if (source instanceof File && source.name !== '') return named([source]);
  if (source instanceof Blob) return source;
  if (source !== '' && (typeof source === 'string' || source instanceof URL)) return addressOf(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return copyOf(present(name, source));
  if (isHandle(source)) return source.kind === 'file' ? fileOf(source) : below(await filesOf(source, ''));
  if (isFiles(source)) return named([...source]);
  const kind = Object.prototype.toString.call(source).slice('[object '.length, -1);
  const advice = INSTEAD[kind];
  const what = source === '' ? 'empty' : advice === undefined || kind === 'Array' ? kindOf(source) : `a ${kind}`;
  throw new QSFError(
    'bad_argument',
    `${name} is ${what}; it must be an address, a File or Blob, a list of files, a FileSystemHandle or an ArrayBuffer` +
      `${advice === undefined ? '' : `: ${advice}`}`,
  );
}

/** Returns the source of a draft model, and the type that its matrices are rounded to. */
export async function draftOf(draft: ModelSource | DraftModel): Promise<Pick<LoadRequest, 'draft' | 'draftType'>> {
  if (!isDraftModel(draft)) return { draft: await sourceOf(draft, DRAFT) };
  checkKnown('draft', draft, DRAFT_MODEL);
  const draftType = typeOf('quantType of the draft', draft.quantType);
  return { draft: await sourceOf(draft.source, DRAFT), draftType };
}

const DRAFT = 'the draft model';
const DRAFT_MODEL = { source: true, quantType: true } satisfies { [Key in keyof DraftModel]-?: true };
const isDraftModel = (draft: ModelSource | DraftModel): draft is DraftModel =>
  Object.prototype.hasOwnProperty.call(Object(draft), 'source');

/** Returns the name of a type in lower case. Throws bad_argument for one that pages do not round to. */
export function typeOf(name: string, given: string | undefined): string | undefined {
  const type = checkKind(name, 'string', given)?.toLowerCase();
  if (type === undefined || (quantTypes as readonly string[]).includes(type)) return type;
  const known = `it must be one of ${quantTypes.join(', ')}; qsf-convert has those that need a search`;
  throw new QSFError('bad_argument', `${name} is ${shown(given)}; ${known}`);
}

/** Advice for values that callers take for a model, by JavaScript's name for their type. */
const INSTEAD: Readonly<Record<string, string>> = {
  Array: 'a list has files only, and the address of one part of a model is enough',
  FileList: 'it is empty',
  Response: 'give its address, of which parts can be read, or the result of its blob()',
  Promise: 'await it first',
};

const isHandle = (source: ModelSource): source is FileSystemFileHandle | FileSystemDirectoryHandle =>
  ['file', 'directory'].includes((source as FileSystemHandle | undefined)?.kind as string);

/** Whether a value is a list of files, at least one. */
function isFiles(source: ModelSource): source is FileList | readonly File[] {
  const isList = Array.isArray(source) || Object.prototype.toString.call(source) === '[object FileList]';
  const files = isList ? [...(source as FileList)] : [];
  return files.length > 0 && files.every((file) => file instanceof File);
}

/** Files that were chosen as a directory have the path in it. Node has no such paths. */
const named = (files: readonly File[]): NamedFile[] =>
  below(files.map((file) => ({ name: file.webkitRelativePath || file.name, file })));

/** Returns files with their paths in the directory that has all of them. */
function below(files: readonly NamedFile[]): NamedFile[] {
  const first = files[0]?.name ?? '';
  let at = 0;
  for (let end = 0; files.every(({ name }) => name.startsWith(first.slice(0, end)));) {
    at = end;
    end = first.indexOf('/', at) + 1;
    if (end === 0) break;
  }
  return files.map(({ name, file }) => ({ name: name.slice(at), file }));
}

const fileOf = (handle: FileSystemFileHandle): Promise<File> => given(handle, () => handle.getFile());

/**
 * Returns the files of a directory and, if `path` is empty, of the directories in it, such as the modules of an encoder.
 * Hidden directories are left out.
 */
const filesOf = (handle: FileSystemDirectoryHandle, path: string): Promise<NamedFile[]> =>
  given(handle, async () => {
    const files: NamedFile[] = [];
    for await (const entry of handle.values()) {
      const name = path + entry.name;
      if (entry.kind === 'file') files.push({ name, file: await entry.getFile() });
      else if (path === '' && !name.startsWith('.')) files.push(...(await filesOf(entry, `${name}/`)));
    }
    return files;
  });

async function given<T>(handle: FileSystemHandle, get: () => Promise<T>): Promise<T> {
  try {
    return await get();
  } catch (cause) {
    if (cause instanceof QSFError) throw cause; // of a directory in it
    const why = messageOf(cause);
    const advice = "its permission may have to be asked for by the handle's requestPermission()";
    const what = handle.kind === 'file' ? 'FileSystemFileHandle' : 'FileSystemDirectoryHandle';
    throw new QSFError('io_error', `the ${what} gave no file: ${why}; ${advice}`, { cause });
  }
}

/** Returns a buffer or a view. Throws bad_argument if a message took its memory. */
export function present<T extends ArrayBuffer | ArrayBufferView>(what: string, given: T): T {
  try {
    new Uint8Array(given instanceof ArrayBuffer ? given : given.buffer, 0, 0);
    return given;
  } catch {
    throw new QSFError('bad_argument', `${what} has no memory any more, because it was transferred`);
  }
}

/**
 * Returns the bytes of a buffer or a view. Copies them if their memory is shared, which neither a Blob nor a message
 * takes.
 */
export function bytesOf(given: ArrayBuffer | ArrayBufferView): Uint8Array<ArrayBuffer> {
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  const { buffer, byteOffset, byteLength } = given;
  if (buffer instanceof ArrayBuffer) return new Uint8Array(buffer, byteOffset, byteLength);
  return new Uint8Array(buffer, byteOffset, byteLength).slice();
}

/**
 * Returns bytes with memory of their own, so that a message can take it. Throws out_of_memory if the browser refuses
 * it.
 */
function copyOf(given: ArrayBuffer | ArrayBufferView): Uint8Array<ArrayBuffer> {
  try {
    const bytes = bytesOf(given);
    return ArrayBuffer.isView(given) && bytes.buffer !== given.buffer ? bytes : bytes.slice();
  } catch (cause) {
    const sentence = `the browser refused ${given.byteLength} bytes for a copy of the model; give it as a File or Blob`;
    throw new QSFError('out_of_memory', sentence, { cause });
  }
}

/** Returns an absolute address; for a repository of the Hub its name, because the worker chooses among its files. */
function addressOf(source: string | URL): string {
  const model = hubName(source);
  if (!model) return fetchable(absolute(source));
  return model.file === '' ? `hf:${model.owner}/${model.name}@${model.revision}` : absolute(hubAddress(model));
}

/** Returns an address that fetch() accepts. Throws bad_argument for one with a user or a password. */
function fetchable(address: string): string {
  const { username, password } = new URL(address);
  if (username === '' && password === '') return address;
  throw new QSFError(
    'bad_argument',
    `${address} has a user or a password, which fetch() refuses; send them as network: { headers: { Authorization: 'Basic …' } }`,
  );
}
