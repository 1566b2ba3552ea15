// Addresses in a form that may be shown and stored. Their users, passwords and signatures are secrets of the caller.

/** The text that replaces a part that may be secret. */
const HIDDEN = '***';
/**
 * An address in a text, with slashes or of a scheme that needs none, and the punctuation of the text that follows it.
 * "[\\/]" would end the expression for Vite 5, which would then overlook the worker.
 */
const ADDRESS = /\b((?:hf:)?[a-z][a-z\d+.-]{0,40}:\/\/|(?:hf|https?):(?:\\|\/)*)([^\s"<>]*)/gi;
const PUNCTUATION = `.,;:!?)'`;

/**
 * Returns the text with user, password, query values and fragment of its addresses replaced by `***`. Takes time in
 * proportion to the text, which may come from a link.
 */
export function hideSecrets(text: string): string {
  return text.replace(ADDRESS, (_, scheme: string, rest: string) => {
    let length = rest.length;
    while (length > 0 && PUNCTUATION.includes(rest[length - 1]!)) length--;
    const [, place = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(rest.slice(0, length))!;
    const shown = place.replace(/^[^/\\]*@/, `${HIDDEN}@`);
    const asked = query === undefined ? '' : `?${query.split('&').map(hideValue).join('&')}`;
    return `${scheme}${shown}${asked}${fragment ? `#${HIDDEN}` : ''}${rest.slice(length)}`;
  });
}

/** Hides the value of `name=value`; a part without a name is a value. */
function hideValue(pair: string): string {
  const name = pair.slice(0, pair.indexOf('=') + 1);
  return pair === '' ? '' : `${name}${HIDDEN}`;
}
