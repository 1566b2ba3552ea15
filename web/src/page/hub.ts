// Names of models of the Hugging Face Hub.
import { QSFError } from '../errors.js';

/**
 * Returns the address of a model that is named as qsf-run names those of the Hub, "hf:OWNER/NAME[/FILE][@REVISION]",
 * and any other source as it is. Without a file it is that of the repository's directory.
 */
export function ofHub(source: string | URL): string | URL {
  const [, path] = /^(?:hf|huggingface):(?:\/\/)?(.*)$/i.exec(String(source)) ?? [];
  if (path === undefined) return source;
  const [, owner, name, file = '', revision = 'main'] = /^([^/@]+)\/([^/@]+)(?:\/([^@]*))?(?:@(.+))?$/.exec(path) ?? [];
  if (owner && name) return `https://huggingface.co/${owner}/${name}/resolve/${encodeURIComponent(revision)}/${file}`;
  const form = 'hf:OWNER/NAME, hf:OWNER/NAME/FILE or either with @REVISION';
  throw new QSFError('bad_argument', `"${String(source)}" names no model of the Hub; write ${form}.`);
}
