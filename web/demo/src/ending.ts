// The line after a story: the reason for its end, and a button. The button continues the story if that is possible, or
// stops it while it is written.

import type { End, Stats } from 'qsf';
import { byId } from './dom.js';
import * as format from './format.js';
import { budgetHelps, hasRoom } from './room.js';

const text = byId('ending-text', HTMLElement);
const button = byId('go-on', HTMLButtonElement);
const story = byId('story', HTMLElement);

/** Ends with a complete text, which cannot be continued. */
const COMPLETE: readonly End[] = ['eos', 'stop'];

/** Shows that a story is being written. A button calls `stop`. */
export function showWriting(stop: () => void): void {
  show('', 'Stop here', stop);
}

/**
 * Shows the reason for the end of the last generation. A button calls `goOn`; it is shown if the story can continue.
 */
export function showEnding(stats: Stats, goOn: () => void): void {
  const { end = 'none', tokens = [] } = stats.generation ?? {};
  const words: Record<End, string> = {
    none: '',
    eos: 'The model ended its text here.',
    stop: 'The model reached a text that ends it.',
    length: `It has the ${tokens.length} tokens that the length allows.`,
    context: '',
    cancelled: 'You stopped it here.',
    error: '',
  };
  const isFull = !hasRoom(stats) && !COMPLETE.includes(end);
  const why = isFull ? `${words[end]} ${fullness(stats)}`.trim() : words[end];
  if (isFull || COMPLETE.includes(end)) show(why);
  else show(why, 'Go on', goOn);
}

export function hideEnding(): void {
  show('');
}

/** Shows the line, with a button if there is an action. A button that disappears gives its focus to the story. */
function show(words: string, action?: string, act?: () => void): void {
  const held = button === document.activeElement;
  text.textContent = words;
  button.hidden = action === undefined;
  button.textContent = action ?? '';
  button.onclick = act ?? null;
  if (held && button.hidden) story.focus({ preventScroll: true });
}

function fullness({ plan, memory }: Stats): string {
  const why = budgetHelps(plan)
    ? `a larger budget than ${format.budget(memory.budget)} has room for more`
    : 'it is as long as this model allows';
  return `Its context of ${plan.maxSeqLen} tokens is full; ${why}.`;
}
