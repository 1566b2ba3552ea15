// Calls that take a sequence, for tests.
import type { Call } from '../../web/src/contract.js';
import { Turn } from '../../web/src/worker/sequences.js';

/** The call of tests with one call at a time. */
export const CALL: Call = { id: 'a call', caller: 'a page' };

/** Returns a turn in a sequence that no other call takes. `others.changes` counts the changes by later calls. */
export function turnIn(sequence = 0, others = { changes: 0 }): Turn {
  const of = { holder: undefined, owner: undefined, turn: 0, prompt: undefined };
  return new Turn(sequence, Object.assign(others, of), () => undefined);
}
