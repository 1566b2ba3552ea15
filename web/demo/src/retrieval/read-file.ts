// The text of a visitor's file: of plain text as it is, of HTML without its tags, of JSON as a line for each value.

import { sliced } from '../slices.js';

/** The most bytes of a file: about 5,000 passages. */
const MOST_BYTES = 4 * 1024 * 1024;

/** The size of one step of the work: bytes or letters, lines, nodes of a page. */
const STEP = 64 * 1024;
const LINES = 64;
const NODES = 256;
/** Letters of a page that are parsed at once, and the deepest nesting: browsers parse deeper pages ever more slowly. */
const PART = 8 * 1024;
const DEEPEST = 500;

const OTHERS = 'Text, Markdown, HTML and JSON can be read; other documents must be saved as one of them first';

/** Beginnings of files that are often tried. */
const KNOWN: readonly (readonly [begin: RegExp, what: string])[] = [
  [/^%PDF/, 'a PDF'],
  [/^PK\x03\x04/, 'a ZIP archive or a document of an office program'], // eslint-disable-line no-control-regex
  [/^\x89PNG|^\xff\xd8|^GIF8/, 'a picture'],
  [/^GGUF|^QSF/, 'a model: choose it among the models'],
];

/** Returns the text of a file, read in slices. Rejects with a sentence for one that is too large, empty or no text. */
export async function readFile(file: File): Promise<string> {
  if (file.size > MOST_BYTES)
    throw new Error(`${file.name} has ${megabytes(file.size)}; a file may have ${megabytes(MOST_BYTES)}`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const plain = await sliced(textOf(file.name, bytes));
  if (plain.trim() === '') throw new Error(`${file.name} has no text`);
  return plain;
}

/**
 * Returns bytes as text; JSON of a file of that name as a line for each of its values, HTML without its tags. Throws a
 * sentence.
 */
export function* textOf(name: string, bytes: Uint8Array): Generator<void, string> {
  const begin = String.fromCharCode(...bytes.subarray(0, 8));
  const known = KNOWN.find(([pattern]) => pattern.test(begin))?.[1];
  if (known !== undefined) throw new Error(`${name} is ${known}. ${OTHERS}`);
  const text = yield* decoded(name, bytes);
  if (/\.json$/i.test(name)) return yield* linesOf(text);
  return /\.x?html?$/i.test(name) ? yield* textOfHtml(name, text) : text;
}

/** Returns bytes as text with line feeds, of which each step decodes a part. */
function* decoded(name: string, bytes: Uint8Array): Generator<void, string> {
  const [first, second] = bytes;
  const marked =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
  try {
    const decoder = new TextDecoder(marked ?? 'utf-8', { fatal: true });
    const parts: string[] = [];
    for (let at = 0; at < bytes.length; at += STEP) {
      parts.push(decoder.decode(bytes.subarray(at, at + STEP), { stream: at + STEP < bytes.length }));
      yield;
    }
    if (!parts.some((part) => part.includes('\0'))) return parts.join('').replaceAll('\r\n', '\n');
  } catch {
    // The sentence is the same for both faults.
  }
  throw new Error(`${name} is no text in UTF-8. ${OTHERS}`);
}

/** Returns a line for each value of JSON, with the path to it; any other text as it is. */
function* linesOf(text: string): Generator<void, string> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const lines: string[] = [];
  const left: { path: string; value: unknown }[] = [{ path: '', value }];
  yield;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (lines.length % LINES === 0) yield;
    const { path, value: one } = next;
    if (typeof one !== 'object' || one === null) {
      lines.push(path === '' ? String(one) : `${path}: ${String(one)}`);
      continue;
    }
    const inner = Array.isArray(one)
      ? one.map((member: unknown, i) => ({ path: `${path}[${i}]`, value: member }))
      : Object.entries(one).map(([name, member]: [string, unknown]) => ({
          path: path === '' ? name : `${path}.${name}`,
          value: member,
        }));
    for (const member of inner.reverse()) left.push(member);
  }
  return lines.join('\n');
}

/** Elements whose content is no text for readers, those that begin a paragraph, and those that are words of their own. */
const names = (text: string) => new Set(text.split(' '));
const LEFT_OUT = names('title script style noscript template svg');
const BLOCKS = names(
  'address article aside blockquote br dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul',
);
const CELLS = names('td th');

/**
 * Returns the words of a page, which is written part by part into a template. A template's content is inert: nothing in it
 * runs or is fetched, and its styles are none of this page's policy.
 */
function* textOfHtml(name: string, html: string): Generator<void, string> {
  const page = document.implementation.createHTMLDocument();
  page.open();
  page.write('<body><template>');
  const { content } = page.querySelector('template')!;
  for (let at = 0; at < html.length; at += PART) {
    page.write(html.slice(at, at + PART));
    if (isDeep(content) || isDeep(page.body)) throw new Error(`${name} has elements that are nested too deeply`);
    yield;
  }
  page.close();
  const words: string[] = [];
  // An end of the template in the text is rare; what follows is in the body.
  for (const root of [content, page.body]) yield* addWords(root, words);
  const parts: string[] = [];
  for (const part of words.join('').split(/\n\s*\n/)) {
    const line = part.replace(/\s+/g, ' ').trim();
    if (line !== '') parts.push(line);
    if (parts.length % LINES === 0) yield;
  }
  return parts.join('\n\n');
}

/** Whether the last node of a tree is too deep in it. */
function isDeep(root: Node): boolean {
  let depth = 0;
  for (let node = root.lastChild; node !== null; node = node.lastChild) depth++;
  return depth > DEEPEST;
}

/** Adds the texts in `root` to `words`, with spaces between cells and empty lines around blocks. */
function* addWords(root: Node, words: string[]): Generator<void> {
  let count = 0;
  let node: Node | null = root.firstChild;
  while (node !== null) {
    if (++count % NODES === 0) yield;
    const name = node.nodeName.toLowerCase();
    if (BLOCKS.has(name)) words.push('\n\n');
    else if (CELLS.has(name)) words.push(' ');
    else if (node instanceof Text) words.push(node.data);
    if (node.firstChild !== null && !LEFT_OUT.has(name)) {
      node = node.firstChild;
      continue;
    }
    for (; node !== root && node!.nextSibling === null; node = node!.parentNode)
      if (BLOCKS.has(node!.nodeName.toLowerCase())) words.push('\n\n');
    if (node === root) return;
    if (BLOCKS.has(node!.nodeName.toLowerCase())) words.push('\n\n');
    node = node!.nextSibling;
  }
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
