// The story as it is written: pieces are gathered and shown once per frame.

import { byId, make } from './dom.js';

const box = byId('story', HTMLElement);
let text = new Text();
let waiting = '';

/** Begins a new story with the words that were given. */
export function beginStory(prompt: string): void {
  waiting = '';
  text = new Text();
  box.setAttribute('aria-busy', 'true');
  box.replaceChildren(make('p', {}, make('span', { class: 'given' }, prompt), text));
}

export function addToStory(piece: string): void {
  if (waiting === '') requestAnimationFrame(flush);
  waiting += piece;
}

/** The story is complete or stopped: all of it is shown, and read out where the page is read out. */
export function endStory(): void {
  flush();
  box.setAttribute('aria-busy', 'false');
}

function flush(): void {
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  text.data += waiting;
  waiting = '';
  if (atEnd) box.scrollTop = box.scrollHeight;
}
