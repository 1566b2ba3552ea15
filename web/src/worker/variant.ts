// The choice of the WebAssembly build, which is timed once for an origin: it depends on the processor and on the
// browser's compiler, and a timing beside other work may go wrong.
import { RELAXED_DOT, detectVariant } from './detect.js';
import { hasSyncAccess, readWhole, syncAccess } from '../sources/opfs.js';
import type { Variant } from '../types.js';

const FOLDER = 'qsf-choices';
const FILE = 'variant';
/** Milliseconds after which it is timed anew: the browser may be on another machine. */
const KEPT_FOR = 30 * 24 * 60 * 60 * 1000;
const TIMED: readonly unknown[] = ['relaxed', 'relaxedpairs'] satisfies Variant[];

/** What a choice depends on and a page can know. */
const host = (): string => `${navigator.userAgent} ${navigator.hardwareConcurrency}`;

/**
 * Returns the build that was chosen for this origin. Chooses it if there is none, and keeps a choice that was timed, if
 * the browser lets it. Throws unsupported_host.
 */
export async function chooseVariant(): Promise<Variant> {
  if (typeof WebAssembly !== 'object' || !WebAssembly.validate(RELAXED_DOT)) return detectVariant();
  const folder = await choices();
  if (!folder) return detectVariant();
  const kept = await keptIn(folder);
  if (kept) return kept;
  const variant = detectVariant();
  await keep(folder, variant).catch(() => {}); // no room, or another tab keeps its own
  return variant;
}

async function choices(): Promise<FileSystemDirectoryHandle | undefined> {
  if (!hasSyncAccess()) return undefined;
  try {
    const top = await navigator.storage.getDirectory();
    return await top.getDirectoryHandle(FOLDER, { create: true });
  } catch {
    return undefined;
  }
}

async function keptIn(folder: FileSystemDirectoryHandle): Promise<Variant | undefined> {
  const { bytes, changed } = await readWhole(folder, FILE);
  const [variant, of] = new TextDecoder().decode(bytes).split('\n');
  const isCurrent = of === host() && Math.abs(Date.now() - changed) < KEPT_FOR;
  return isCurrent && TIMED.includes(variant) ? (variant as Variant) : undefined;
}

async function keep(folder: FileSystemDirectoryHandle, variant: Variant): Promise<void> {
  const file = await syncAccess(await folder.getFileHandle(FILE, { create: true }), 0);
  try {
    const bytes = new TextEncoder().encode(`${variant}\n${host()}`);
    file.truncate(0);
    file.write(bytes, 0);
    file.flush();
  } finally {
    file.close();
  }
}
