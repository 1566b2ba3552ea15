// Addresses of models, as visitors and links give them.

/** Returns the http(s) address that a text is, in any case of letters; undefined for every other text. */
export function modelAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url.href : undefined;
}

/** Returns an address without its user and its password. */
export function withoutUser(address: string): string {
  const url = new URL(address);
  url.username = url.password = '';
  return url.href;
}
