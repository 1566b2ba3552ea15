// The source of a model's bytes, by its location and by the kind of its file.
import type { LoadRequest, NamedFile } from '../contract.js';
import { QSFError } from '../errors.js';
import { makeRoom } from '../page/cache.js';
import { BlobSource } from '../sources/blob.js';
import { CopiedBlob } from '../sources/copied-blob.js';
import { HttpSource } from '../sources/http-source.js';
import type { Warn } from '../sources/http-source.js';
import { KeptMadeSource } from '../sources/kept-made.js';
import { MAGIC_BYTES, isOfOtherKind } from '../sources/kinds.js';
import { BytesSource } from '../sources/local.js';
import { MadeSource } from '../sources/made-source.js';
import { openCache } from '../sources/model-cache.js';
import { keepsFiles } from '../sources/opfs.js';
import type { ByteSource } from '../sources/source.js';
import type { MakerStarter } from '../wasm/maker.js';
import { fetchFile, openFile } from './worker-platform.js';

type Where = LoadRequest['source'];

/** The name of a file that has none. */
const NAMELESS = 'model';
const NOT_FOUND = 404;
/** The statuses of web pages in place of files. */
const PAGES = [200, 206];

/** Whether a model comes from the network. */
export const isRemote = (source: Where): source is string => typeof source === 'string' && !source.startsWith('file:');

/** Opens a model. One of another kind than .qsf is made as it is read. */
export async function openSource(request: LoadRequest, start: MakerStarter, warn: Warn): Promise<ByteSource> {
  const { source } = request;
  if (isFolder(source)) {
    checkNoDigest(request);
    return make(request, undefined, start, warn);
  }
  const first = await openFirst(request, warn);
  if (!(await closing(first, isOtherKind(first, request)))) return first;
  // A server without ranges sends the whole file, which is kept as it comes.
  const kept = first instanceof HttpSource && first.head ? first.detach() : undefined;
  if (!kept) return make(request, first, start, warn);
  // The kept file has the other files' weights.
  const isNew = kept.cache.verified.total === 0;
  const made = await closing(kept.cache, make({ ...request, cache: false }, first, start, warn, isNew));
  const { quantType } = request;
  const at = kept.identity;
  if (!(await hasRoom(request, at().url, made.size))) {
    kept.cache.reset(at()); // nothing is left of an earlier visit
    await kept.cache.close();
    return made;
  }
  return new KeptMadeSource(made, kept.cache, () => ({ ...at(), ...(quantType !== undefined && { quantType }) }));
}

/** Opens a model of another kind. Its errors name the address. */
async function make(
  request: LoadRequest,
  source: ByteSource | undefined,
  start: MakerStarter,
  warn: Warn,
  isNew = true,
): Promise<MadeSource> {
  try {
    return await MadeSource.open({
      first: source && { name: nameOf(request.source), source },
      open: (name) => openOther(request, name, warn),
      start: () => start(request.wasm),
      quantType: request.quantType,
      warn,
      early: isNew && !request.lazy,
    });
  } catch (error) {
    const isUnnamed = error instanceof QSFError && error.url === undefined;
    throw isUnnamed && typeof request.source === 'string' ? error.at(request.source) : error;
  }
}

/** Closes the source or the cache if `work` fails. */
async function closing<T>(open: { close(): Promise<void> }, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    await open.close();
    throw error;
  }
}

/** Whether a model is a directory, whose files have names. */
const isFolder = (source: Where): boolean =>
  typeof source === 'string' ? new URL(source).pathname.endsWith('/') : isList(source) && !fileOf(source);

const isList = (source: Where): source is readonly NamedFile[] => Array.isArray(source);

/** Returns the file of a list that is a model, or a part of one. */
const fileOf = (files: readonly NamedFile[]): NamedFile | undefined =>
  files.length === 1 ? files[0] : files.find(({ name }) => /\.(gguf|qsf)$/i.test(name));

function openFirst(request: LoadRequest, warn: Warn): Promise<ByteSource> {
  const { source } = request;
  return openBytes(request, isList(source) ? fileOf(source)!.file : source, warn);
}

async function openBytes(
  request: LoadRequest,
  source: Exclude<Where, readonly NamedFile[]>,
  warn: Warn,
  refusesPages = false,
): Promise<ByteSource> {
  if (source instanceof Uint8Array) return new BytesSource(source);
  if (typeof source !== 'string') return openBlob(request, source, warn);
  return isRemote(source) ? openHttp(request, source, warn, refusesPages) : openFile(source);
}

const openBlob = ({ cache, cacheLimit = Infinity }: LoadRequest, blob: Blob, warn: Warn): BlobSource =>
  cache && keepsFiles() ? new CopiedBlob(blob, cacheLimit, warn) : new BlobSource(blob);

async function openHttp(request: LoadRequest, url: string, warn: Warn, refusesPages: boolean): Promise<HttpSource> {
  const { cache, network, quantType } = request;
  let kept = cache ? await openCache(url, network.headers, warn, quantType) : undefined;
  // Another tab makes the file, and has not finished.
  if (kept && !kept.owned && kept.identity?.of !== undefined && !kept.complete) {
    await kept.close();
    kept = undefined;
  }
  const access = { ...network, fetch: fetchFile, refusesPages };
  let http: HttpSource;
  try {
    http = await HttpSource.open(url, kept, access, warn);
  } catch (error) {
    await kept?.close();
    throw error;
  }
  if (!kept?.owned || (await hasRoom(request, url, http.size))) return http;
  await http.forget();
  return HttpSource.open(url, undefined, access, warn);
}

/** Whether a model of so many bytes may be kept. Removes other models for it. */
async function hasRoom({ cacheLimit, quantType }: LoadRequest, url: string, size: number): Promise<boolean> {
  if (cacheLimit === undefined) return true;
  if (size <= cacheLimit) await makeRoom(cacheLimit - size, url, quantType);
  return size <= cacheLimit;
}

/**
 * Whether a file must be made. Throws bad_argument if it must be, or was, and `sha256` is given; or if it need not be, and a
 * type is asked for.
 */
async function isOtherKind(source: ByteSource, request: LoadRequest): Promise<boolean> {
  const isOther = isOfOtherKind(await firstBytes(source));
  if (isOther || (source instanceof HttpSource && source.isMade)) checkNoDigest(request);
  else if (request.quantType !== undefined)
    throw new QSFError('bad_argument', 'quantType is for GGUF files and directories; a .qsf file keeps its types');
  return isOther;
}

async function firstBytes(source: ByteSource): Promise<Uint8Array> {
  if (source instanceof HttpSource && source.head) return source.head;
  const into = new Uint8Array(Math.min(MAGIC_BYTES, source.size));
  await source.read({ offset: 0, into, crc: undefined });
  return into;
}

/** The bytes of a made file are not those that a caller knows the SHA-256 of. */
function checkNoDigest({ sha256 }: LoadRequest): void {
  if (sha256 === undefined) return;
  throw new QSFError('bad_argument', 'sha256 can be compared for a .qsf file only; the model is of another kind');
}

/** Returns the name of a model's file. */
function nameOf(source: Where): string {
  if (isList(source)) return fileOf(source)!.name;
  if (typeof source !== 'string') return (source instanceof File && source.name) || NAMELESS;
  const name = new URL(source).pathname.split('/').at(-1)!;
  try {
    return decodeURIComponent(name) || NAMELESS;
  } catch {
    return name;
  }
}

/** Returns the address of a file in the directory of an address. Servers and Node do not take an encoded slash for one. */
export function nextTo(address: string, name: string): string {
  const url = new URL(address);
  url.pathname = [...url.pathname.split('/').slice(0, -1), ...name.split('/').map(encodeURIComponent)].join('/');
  return url.href;
}

/** Opens another file of a model by its name, as it is. Resolves with undefined if there is none. */
async function openOther(
  { quantType: _, ...request }: LoadRequest,
  name: string,
  warn: Warn,
): Promise<ByteSource | undefined> {
  const { source } = request;
  if (isList(source)) {
    const found = source.find((other) => other.name === name);
    return found && openBlob(request, found.file, warn);
  }
  if (typeof source !== 'string') return undefined;
  try {
    return await openBytes(request, nextTo(source, name), warn, true);
  } catch (error) {
    const { status = 0, code } = error instanceof QSFError ? error : {};
    const isAbsent = status === NOT_FOUND || PAGES.includes(status) || code === 'io_error';
    if (isAbsent) return undefined;
    throw error;
  }
}
