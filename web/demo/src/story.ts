// The story while it is written. Pieces are gathered and shown once per frame. The view follows the end of the text as
// long as the reader sees it.

import { byId, make } from './dom.js';

/** Pixels by which the end may be out of view and still counts as seen. */
const NEAR = 40;

const box = byId('story', HTMLElement);
let text = new Text();
let waiting = '';

/** Begins a new story with the visitor's words. */
export function beginStory(prompt: string): void {
  text = new Text();
  box.replaceChildren(make('p', {}, make('span', { class: 'given' }, prompt), text));
  resumeStory();
}

/** Begins another part of the story. */
export function resumeStory(): void {
  waiting = '';
  box.setAttribute('aria-busy', 'true');
  showEnd();
}

export function addToStory(piece: string): void {
  if (waiting === '') requestAnimationFrame(flush);
  waiting += piece;
}

/** Ends the part: shows all of it, and lets a screen reader read it. */
export function endStory(): void {
  flush();
  box.setAttribute('aria-busy', 'false');
}

function flush(): void {
  if (waiting === '') return;
  const follows = seesEnd();
  text.data += waiting;
  waiting = '';
  if (follows) showEnd();
}

/** Whether the end of the text is in view, in its box and in the window. */
function seesEnd(): boolean {
  const { bottom } = box.getBoundingClientRect();
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR && bottom > 0 && bottom < innerHeight + NEAR;
}

function showEnd(): void {
  box.scrollTop = box.scrollHeight;
  box.scrollIntoView({ block: 'nearest' });
}
