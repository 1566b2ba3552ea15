// Requests for a model's bytes in Node, which follow redirects by the rules of qsf-run. Node's own fetch() sends the
// caller's headers to any server that a redirect names; a browser asks that server for its consent first.
import { QSFError } from '../errors.js';

/** Redirects of one request, as many as browsers follow. */
const MOST = 20;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Request headers that say nothing about the caller. */
const ANYWHERE = ['range', 'if-range'];

/**
 * Fetches as fetch() does. A redirect to another origin loses the caller's headers. A redirect from https to http, to
 * anything else than these, or the twenty-first one, throws network_error.
 */
export const fetchFile: typeof fetch = async (input, init = {}) => {
  const first = input instanceof Request ? input.url : String(input);
  let url = new URL(first);
  let headers = new Headers(init.headers);
  for (let hops = 1; ; hops++) {
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    const location = REDIRECTS.includes(response.status) ? response.headers.get('Location') : null;
    if (location === null) return response;
    void response.body?.cancel().catch(() => {});
    const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    const why = hops > MOST ? `more than ${MOST} redirects` : refusal(url, next);
    if (!next || why) throw new QSFError('network_error', `${first} could not be read: ${why}`, { url: first });
    if (next.origin !== url.origin) headers = new Headers([...headers].filter(([name]) => ANYWHERE.includes(name)));
    url = next;
  }
};

/** Returns the reason why a redirect is not followed, if there is one. */
function refusal(from: URL, to: URL | undefined): string | undefined {
  if (!to || !['http:', 'https:'].includes(to.protocol))
    return 'the server redirects to something that is no http(s) address';
  if (from.protocol === 'https:' && to.protocol === 'http:')
    return 'the server redirects from https to http, and others can read and change the traffic there';
  return undefined;
}
