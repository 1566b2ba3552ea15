// Addresses of models, as visitors and links give them.

import { QSF, hideSecrets } from 'qsf';
import type { SuggestedModel } from 'qsf';

/** The address of a file, or of a directory, on the Hugging Face Hub. */
const HUB = /^https:\/\/huggingface\.co\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/([^?#]*)$/;

/**
 * Returns the http(s) address that a text is, in any case of letters, or its name on the Hub as `hf:owner/name`, with a
 * file if it has one. Undefined for every other text.
 */
export function modelAddress(text: string): string | undefined {
  if (/^(hf|huggingface):[^@\s]+\/[^@\s]+(@\S+)?$/i.test(text)) return text;
  if (/^[\w-]+\/[\w.-]+(\/[\w./-]*)?$/.test(text)) return `hf:${text.replace(/\/$/, '')}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url.href : undefined;
}

/** Returns the name of a model of the Hub as `hf:owner/name`, with a file if it has one, and any other address as it is. */
export function hubName(address: string): string {
  const [, model, revision, file] = HUB.exec(address) ?? [];
  if (model === undefined) return address;
  return `hf:${model}${file ? `/${file}` : ''}${revision === 'main' ? '' : `@${decoded(revision!)}`}`;
}

/** Returns the last name in an address: of a file, or of a directory. It has no characters that change others' order. */
export function lastName(address: string): string {
  const path = hubName(address).replace(/[?#].*$/, '');
  const name = path.split('/').findLast((part) => part !== '') ?? path;
  return decoded(name).replace(/\p{C}/gu, '\ufffd');
}

/** Returns the text that a part of an address encodes, or the part itself if it encodes none. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the server that a model is fetched from, as host and port. */
export const hostOf = (address: string): string => new URL(address).host || 'huggingface.co';

/** Returns an address as it can be shown to a visitor: in ASCII, without its password and the values of its query. */
export const shownAddress = (address: string): string =>
  hideSecrets(address.replace(/[^ -~]/gu, (character) => encodeURIComponent(character)));

/** Returns an address without its user and its password. */
export function withoutUser(address: string): string {
  const url = new URL(address);
  url.username = url.password = '';
  return url.href;
}

/** Returns the suggested model of a source; undefined if it is another one. */
export const suggestedSource = (source: string | File): SuggestedModel | undefined =>
  typeof source === 'string' ? QSF.models.find((model) => model.source === hubName(source)) : undefined;
