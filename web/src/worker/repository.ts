// The model of a repository of the Hugging Face Hub that names no file, and of several files: the rule of
// native/made/hub_files.def, as qsf-run applies it.
import { MiB } from '../constants.js';
import type { CacheEntry } from '../cache-types.js';
import type { LoadRequest, NamedFile } from '../contract.js';
import { QSFError } from '../errors.js';
import { hubEndings, hubOthers, hubPart, hubShare } from '../hub.gen.js';
import { keptModels } from '../page/cache.js';
import { hubAddress, hubListing, hubName } from '../page/hub.js';
import type { HubName } from '../page/hub.js';
import { HttpFile } from '../sources/http.js';
import type { Warn } from '../sources/http-source.js';
import { fetchFile } from './worker-platform.js';

/** Bytes of the list of a repository's files. */
const MOST_BYTES = 32 * MiB;

/** A directory has this file. */
const CONFIG = 'config.json';

/** A file of a repository. */
export interface HubFile {
  name: string;
  size: number;
}

/** The choice among a repository's models. */
export interface HubChoice extends HubFile {
  /** Whether its weights leave a share of the budget to everything else. */
  fits: boolean;
  /** The number of models. */
  of: number;
}

/**
 * Returns a request with the address of a file, or of a directory, in place of a repository. Puts the chosen model of a
 * list of files first. `warn` gets a sentence about a choice. Rejects with http_status or network_error if the server gives
 * no list of files, except that kept models are chosen among without a network; with unsupported if the repository has no
 * model.
 */
export async function chosenRequest(request: LoadRequest, warn: Warn): Promise<LoadRequest> {
  const { source } = request;
  if (Array.isArray(source)) return { ...request, source: chosenFirst(source, request.memory, warn) };
  const model = typeof source === 'string' ? hubName(source) : undefined;
  if (!model) return request;
  const at = (file: string) => ({ ...request, source: hubAddress({ ...model, file }) });
  if (model.file !== '') return at(model.file);
  const files = await filesOf(model, request, warn);
  const choice = chooseFile(files, request.memory);
  if (!choice) {
    if (files.some(({ name }) => name === CONFIG)) return at('');
    throw new QSFError('unsupported', `${String(source)} has no GGUF or .qsf file, and no config.json`);
  }
  warn(`hf:${model.owner}/${model.name}: ${reported(choice)}`);
  return at(choice.name.split('/').map(encodeURIComponent).join('/'));
}

/** Returns files in the order in which the chosen model comes first, if they have one. */
function chosenFirst(files: readonly NamedFile[], budget: number, warn: Warn): readonly NamedFile[] {
  const sizes = files.map(({ name, file }) => ({ name, size: file.size }));
  const choice = chooseFile(sizes, budget);
  if (!choice) return files;
  if (choice.of > 1 || files.some(({ name }) => name === CONFIG)) warn(`The files: ${reported(choice)}`);
  const isChosen = ({ name }: NamedFile) => name === choice.name;
  return [...files.filter(isChosen), ...files.filter((file) => !isChosen(file))];
}

function reported({ name, size, fits, of }: HubChoice): string {
  const why = fits ? 'largest' : 'smallest';
  const which = fits ? 'fits in the budget' : 'are there, none of which fits in the budget';
  return `${name} of ${(size / MiB).toFixed(1)} MiB is read, the ${why} of ${of} that ${which}.`;
}

/** Returns the largest model that fits in the budget, else the smallest; undefined if no file is a model. */
export function chooseFile(files: readonly HubFile[], budget: number): HubChoice | undefined {
  const models = modelsOf(files);
  const [first] = models;
  if (!first) return undefined;
  const room = Math.floor(budget / hubShare.denominator) * hubShare.numerator;
  const fitting = models.filter(({ size }) => size <= room);
  const best = fitting.reduce<HubFile | undefined>((a, b) => (a && a.size >= b.size ? a : b), undefined);
  const least = models.reduce((a, b) => (b.size < a.size ? b : a), first);
  return { ...(best ?? least), fits: best !== undefined, of: models.length };
}

const DIGITS = /0+/g;
const PART = new RegExp(
  `^(.*)${hubPart.replaceAll('.', '\\.').replace(DIGITS, (zeros) => `(\\d{${zeros.length}})`)}$`,
  's',
);

/** Returns the models that are one file each, or one divided file: the names of first parts, with the size of all. */
function modelsOf(files: readonly HubFile[]): HubFile[] {
  const whole: HubFile[] = [];
  const divided = new Map<string, HubFile & { missing: number }>();
  for (const { name, size } of files) {
    const last = name.split('/').at(-1)!;
    if (hubOthers.some((word) => last.includes(word))) continue;
    const [, stem, number, count] = PART.exec(name) ?? [];
    if (stem !== undefined) {
      const all = divided.get(stem) ?? { name: '', size: 0, missing: Number(count) };
      if (Number(number) === 1) all.name = name;
      divided.set(stem, { ...all, size: all.size + size, missing: all.missing - 1 });
    } else if (hubEndings.some((ending) => last.toLowerCase().endsWith(ending))) {
      whole.push({ name, size });
    }
  }
  const parted = [...divided].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, parts]) => parts);
  return [...whole, ...parted.filter(({ name, missing }) => missing === 0 && name !== '')];
}

/** Returns the files of a repository; without a network, those that this browser keeps. */
async function filesOf(model: HubName, request: LoadRequest, warn: Warn): Promise<HubFile[]> {
  const kept = request.cache ? await keptOf(model, request.quantType) : [];
  const { network } = request;
  const http = new HttpFile(hubListing(model), {
    ...network,
    ...(kept.length > 0 && { retries: 0 }),
    fetch: fetchFile,
    origin: globalThis.location?.origin,
    onRetry: warn,
  });
  try {
    return await read(http);
  } catch (error) {
    if (!(error instanceof QSFError)) throw error;
    if (error.code === 'network_error' && kept.length > 0) return kept;
    throw explained(error, model);
  } finally {
    http.close();
  }
}

/** Returns the kept files of a repository that were made with a type, or without any. */
async function keptOf(model: HubName, type: string | undefined): Promise<HubFile[]> {
  const folder = hubAddress({ ...model, file: '' });
  const isKept = ({ url, complete, quantType }: CacheEntry) => complete && quantType === type && url.startsWith(folder);
  const entries = (await keptModels()).filter(isKept);
  return entries.map(({ url, total }) => ({ name: decodeURIComponent(url.slice(folder.length)), size: total }));
}

async function read(http: HttpFile): Promise<HubFile[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      const decoder = new TextDecoder();
      let text = '';
      let bytes = 0;
      const response = await http.whole();
      for await (const chunk of http.chunks(response)) {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) throw senseless(http.url);
        text += decoder.decode(chunk, { stream: true });
      }
      return listed(text, http.url);
    } catch (error) {
      await http.mayRetry(error, attempt);
    }
  }
}

/** Returns the files that a list has. Throws bad_input if it makes no sense. */
function listed(text: string, url: string): HubFile[] {
  let siblings: unknown;
  try {
    ({ siblings } = JSON.parse(text) as { siblings?: unknown });
  } catch {
    throw senseless(url);
  }
  if (!Array.isArray(siblings)) throw senseless(url);
  return siblings.map((file: { rfilename?: unknown; size?: unknown } | null) => {
    const { rfilename: name, size } = file ?? {};
    if (typeof name !== 'string' || !isRelative(name)) throw senseless(url);
    return { name, size: typeof size === 'number' && size >= 0 ? size : 0 };
  });
}

const isRelative = (path: string): boolean => path.split('/').every((part) => !['', '.', '..'].includes(part));

const senseless = (url: string): QSFError =>
  new QSFError('bad_input', `the server's list of the repository's files makes no sense: ${url}`, { url });

const TOKEN = 'an account that may read it has a token, sent as network.headers.Authorization';
/** Reasons for a server's status. */
const STATUS: Readonly<Record<number, string>> = {
  401: `private or not there; ${TOKEN}`,
  403: `gated; ${TOKEN}`,
  404: 'not there',
};

function explained(error: QSFError, { owner, name }: HubName): QSFError {
  const { status = 0, url } = error;
  const why = error.code === 'http_status' ? STATUS[status] : undefined;
  if (why === undefined) return error;
  return new QSFError('http_status', `hf:${owner}/${name} is ${why} (status ${status})`, {
    ...(url && { url }),
    status,
  });
}
