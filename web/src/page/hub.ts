// Names of models of the Hugging Face Hub.
import { QSFError } from '../errors.js';

const ENDPOINT = 'https://huggingface.co';

/** A model of the Hub as it is named. Without `file` its repository. */
export interface HubName {
  owner: string;
  name: string;
  file: string;
  revision: string;
}

/**
 * Returns the parts of a name as qsf-run has those of the Hub, "hf:OWNER/NAME[/FILE][@REVISION]"; undefined for any
 * other source. Throws bad_argument if it names no model.
 */
export function hubName(source: string | URL): HubName | undefined {
  const [, path] = /^(?:hf|huggingface):(?:\/\/)?(.*)$/i.exec(String(source)) ?? [];
  if (path === undefined) return undefined;
  const [, owner, name, file = '', revision = 'main'] = /^([^/@]+)\/([^/@]+)(?:\/([^@]*))?(?:@(.+))?$/.exec(path) ?? [];
  if (owner && name) return { owner, name, file, revision };
  const form = 'hf:OWNER/NAME, hf:OWNER/NAME/FILE or either with @REVISION';
  throw new QSFError('bad_argument', `"${String(source)}" names no model of the Hub; write ${form}`);
}

/** Returns the address of a file; without one, of the repository's directory. */
export const hubAddress = ({ owner, name, file, revision }: HubName): string =>
  `${ENDPOINT}/${owner}/${name}/resolve/${encodeURIComponent(revision)}/${file}`;

/** Returns the address of the list of a repository's files. */
export const hubListing = ({ owner, name, revision }: HubName): string =>
  `${ENDPOINT}/api/models/${owner}/${name}/revision/${encodeURIComponent(revision)}?blobs=true`;

/** Returns the address of a model that is named as those of the Hub, and any other source as it is. */
export function ofHub(source: string | URL): string | URL {
  const model = hubName(source);
  return model ? hubAddress(model) : source;
}
