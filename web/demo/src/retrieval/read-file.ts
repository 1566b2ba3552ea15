// The text of a visitor's file: of plain text as it is, of HTML without its tags, of JSON as a line for each value.

/** The most bytes of a file: about 5,000 passages. */
const MOST_BYTES = 4 * 1024 * 1024;

const OTHERS = 'Text, Markdown, HTML and JSON can be read; other documents must be saved as one of them first';

/** Beginnings of files that are often tried. */
const KNOWN: readonly (readonly [begin: RegExp, what: string])[] = [
  [/^%PDF/, 'a PDF'],
  [/^PK\x03\x04/, 'a ZIP archive or a document of an office program'], // eslint-disable-line no-control-regex
  [/^\x89PNG|^\xff\xd8|^GIF8/, 'a picture'],
  [/^GGUF|^QSF/, 'a model: choose it among the models'],
];

/** Returns the text of a file. Rejects with a sentence for one that is too large, empty or no text. */
export async function readFile(file: File): Promise<string> {
  if (file.size > MOST_BYTES)
    throw new Error(`${file.name} has ${megabytes(file.size)}; a file may have ${megabytes(MOST_BYTES)}`);
  const text = textOf(file.name, new Uint8Array(await file.arrayBuffer()));
  const plain = /\.x?html?$/i.test(file.name) ? textOfHtml(text) : text;
  if (plain.trim() === '') throw new Error(`${file.name} has no text`);
  return plain;
}

/** Returns bytes as text; JSON of a file of that name as a line for each of its values. Throws a sentence. */
export function textOf(name: string, bytes: Uint8Array): string {
  const begin = String.fromCharCode(...bytes.subarray(0, 8));
  const known = KNOWN.find(([pattern]) => pattern.test(begin))?.[1];
  if (known !== undefined) throw new Error(`${name} is ${known}. ${OTHERS}`);
  const text = decoded(name, bytes).replaceAll('\r\n', '\n');
  return /\.json$/i.test(name) ? linesOf(text) : text;
}

function decoded(name: string, bytes: Uint8Array): string {
  const [first, second] = bytes;
  const marked =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
  try {
    const text = new TextDecoder(marked ?? 'utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // The sentence is the same for both faults.
  }
  throw new Error(`${name} is no text in UTF-8. ${OTHERS}`);
}

/** Returns a line for each value of JSON, with the path to it; any other text as it is. */
function linesOf(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const lines: string[] = [];
  const left: { path: string; value: unknown }[] = [{ path: '', value }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
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
    left.push(...inner.reverse());
  }
  return lines.join('\n');
}

/** Elements whose content is no text for readers, and those that begin a paragraph. */
const LEFT_OUT = 'title, script, style, noscript, template, svg';
const BLOCKS =
  'address, article, aside, blockquote, br, dd, div, dl, dt, figure, footer, form, h1, h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, p, pre, section, table, tr, ul';

/**
 * Returns the words of a page. A template's content is inert: nothing in it runs or is fetched, and its styles are none of
 * this page's policy.
 */
function textOfHtml(html: string): string {
  const template = document.createElement('template');
  template.innerHTML = html;
  const { content } = template;
  for (const element of content.querySelectorAll(LEFT_OUT)) element.remove();
  for (const block of content.querySelectorAll(BLOCKS)) block.before('\n\n');
  for (const cell of content.querySelectorAll('td, th')) cell.before(' ');
  return (content.textContent ?? '')
    .split(/\n\s*\n/)
    .map((part) => part.replace(/\s+/g, ' ').trim())
    .filter((part) => part !== '')
    .join('\n\n');
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
