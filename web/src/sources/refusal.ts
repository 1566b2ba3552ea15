// The reason why no answer can be read. A browser reports to a page only that a fetch failed, so the server is asked in
// other ways, and the sentence names their results.
import type { ErrorName } from '../errors.js';
import { policyNeeds, policyRefuses } from '../policy.js';

/** Milliseconds that a server has to answer such a question. */
const PATIENCE = 3000;

export interface Refused {
  url: string;
  /** The origin of the page; undefined outside of browsers, which hide nothing. */
  origin: string | undefined;
  /** The caller's own headers. */
  headers: Record<string, string> | undefined;
  credentials: RequestCredentials | undefined;
  fetch: typeof fetch;
  signal: AbortSignal;
}

/** A finding, as the end of a sentence. */
export interface Evidence {
  code: ErrorName;
  why: string;
}

const network = (why: string): Evidence => ({ code: 'network_error', why });

/**
 * Returns the reason why no range could be read; undefined if nothing is found. `answered`: an answer began, and broke.
 */
export async function evidenceOf(refused: Refused, answered: boolean): Promise<Evidence | undefined> {
  const { url, origin, headers = {}, credentials } = refused;
  if (origin === undefined) return undefined;
  const isOther = new URL(url).origin !== origin;
  const named = Object.keys(headers);

  const readable = await ask(refused, { headers, ...(credentials && { credentials }) });
  const encoding = readable?.headers.get('Content-Encoding') ?? 'identity';
  if (encoding !== 'identity') return { code: 'no_ranges', why: encoded(encoding) };
  if (answered || (readable && !readable.ok)) return undefined;
  if (readable) return network(isOther ? `${ONLY_WHOLE} ${ALLOW_RANGE}` : ONLY_WHOLE);
  if (!isOther || !(await ask(refused, { mode: 'no-cors' }))) {
    const refuses = await policyRefuses(url, refused.fetch, patience(refused.signal));
    return refuses ? { code: 'unsupported_host', why: policyNeeds(url) } : undefined;
  }
  const pages = `pages of ${origin}`;
  if (named.length > 0 && (await ask(refused, {}))) {
    const list = named.join(', ');
    return network(
      `the server lets ${pages} not send the request headers ${list} (CORS): it must name them in Access-Control-Allow-Headers`,
    );
  }
  const trusted = credentials === 'include' ? ' and Access-Control-Allow-Credentials: true' : '';
  return network(
    `the server answers, but lets ${pages} read nothing (CORS): it must send Access-Control-Allow-Origin: ${origin}${trusted}, ` +
      `with errors too, allow the request headers ${['Range', ...named].join(', ')}, and expose Content-Range and ETag`,
  );
}

const encoded = (encoding: string) =>
  `the server sends the file with Content-Encoding ${encoding}, of which a browser reads no range: it must send it as it is`;
const ONLY_WHOLE =
  'the server answers when it is asked for the whole file, but not for a range: it must send ranges as they are, without Content-Encoding';
const ALLOW_RANGE = 'and allow the request header Range (CORS)';

const patience = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);

/** Returns the answer to a request for the file without its bytes and without a range; undefined if there is none. */
async function ask({ url, fetch, signal }: Refused, how: RequestInit): Promise<Response | undefined> {
  try {
    return await fetch(url, { method: 'HEAD', cache: 'no-store', signal: patience(signal), ...how });
  } catch {
    return undefined;
  }
}
