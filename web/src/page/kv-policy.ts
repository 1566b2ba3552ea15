// The policy by which positions are evicted, as the engine's numbers.
import type { OpenOptions } from '../boundary.gen.js';
import { QSFError } from '../errors.js';
import { shown } from './options.js';

/** The policies of one number. Their places are the numbers of the engine's option. */
const OF_WINDOW = ['window', 'h2o', 'snapkv'];

/** Returns the engine's options of a policy. Throws bad_argument for another text. */
export function kvPolicyOf(policy: unknown = 'all'): Pick<OpenOptions, 'kvWindow' | 'kvSinks' | 'kvChosen'> {
  if (policy === 'all') return { kvWindow: 0, kvSinks: 0, kvChosen: 0 };
  const form = typeof policy === 'string' && /^(?:(window|h2o|snapkv):|sinks:([1-9]\d*)\+)([1-9]\d*)$/.exec(policy);
  if (form) {
    const [, name, sinks, window] = form;
    return { kvWindow: Number(window), kvSinks: Number(sinks ?? 0), kvChosen: name ? OF_WINDOW.indexOf(name) : 0 };
  }
  const forms = 'all, window:N, sinks:A+N, h2o:N or snapkv:N with numbers of positions';
  throw new QSFError('bad_argument', `kvPolicy is ${shown(policy)}; it must be ${forms}`);
}
