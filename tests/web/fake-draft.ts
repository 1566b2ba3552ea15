// The calls of a session that concern drafts and guides, as those of one without a draft and with one guide.
import type { Failure, Session } from '../../web/src/boundary.gen.js';

type OfOthers = Pick<
  Session,
  'useDraft' | 'openDraft' | 'checkDraft' | 'draftNote' | 'beginGuess' | 'takeGuess' | 'guides'
>;

export class WithoutDraft implements OfOthers {
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
  guides(): number {
    return 1;
  }
}
