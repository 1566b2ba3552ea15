// Addresses in a form that may be shown and stored. Their users, passwords and signatures are secrets of the caller.

/** The text that replaces a part that may be secret. */
const HIDDEN = '***';
/** An address in a text, and the punctuation of the text that follows it. */
const ADDRESS = /\b([a-z][a-z\d+.-]*:\/\/)([^\s"<>]*?)([.,;:!?)']*)(?=[\s"<>]|$)/gi;

/** Returns the text with user, password, query values and fragment of its addresses replaced by `***`. */
export function hideSecrets(text: string): string {
  return text.replace(ADDRESS, (_, scheme: string, rest: string, end: string) => {
    const [, place = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(rest)!;
    const shown = place.replace(/^[^/\\]*@/, `${HIDDEN}@`);
    const asked = query === undefined ? '' : `?${query.split('&').map(hideValue).join('&')}`;
    return `${scheme}${shown}${asked}${fragment ? `#${HIDDEN}` : ''}${end}`;
  });
}

/** Hides the value of `name=value`; a part without a name is a value. */
function hideValue(pair: string): string {
  const name = pair.slice(0, pair.indexOf('=') + 1);
  return pair === '' ? '' : `${name}${HIDDEN}`;
}
