// The calls of a session that concern drafts, as those of one without a draft.
import type { Failure, Session } from '../../web/src/boundary.gen.js';

type OfDrafts = Pick<Session, 'useDraft' | 'openDraft' | 'checkDraft' | 'draftNote' | 'beginGuess' | 'takeGuess'>;

export class WithoutDraft implements OfDrafts {
  useDraft(): void {
    // It is not asked for guesses.
  }
  openDraft(): boolean {
    return true;
  }
  checkDraft(): undefined {
    return undefined;
  }
  draftNote(): Failure {
    return { code: 0, sentence: '' };
  }
  beginGuess(): boolean {
    return false;
  }
  takeGuess(): boolean {
    return true;
  }
}
