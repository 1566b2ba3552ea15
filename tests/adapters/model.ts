// A model over the fake engine, with the worker's own generation, for tests with published packages.
import type { AnswerPiece, End } from '../../web/src/boundary.gen.js';
import { reply } from '../../web/src/contract.js';
import { QSF } from '../../web/src/page/qsf.js';
import { Generation } from '../../web/src/worker/generation.js';
import { Passes } from '../../web/src/worker/passes.js';
import { Runner } from '../../web/src/worker/runner.js';
import { turnIn } from '../web/call.js';
import { FakeSource, fakeEngine, until } from '../web/fake-engine.js';
import type { FakeSession } from '../web/fake-engine.js';
import { installFakeWorker } from '../web/fake-worker.js';
import type { Backend } from '../web/fake-worker.js';

/** An answer with a thought, text and a call, one part for each token but the call, which has two. */
export const ANSWER: AnswerPiece[][] = [
  [{ kind: 'thought', text: 'They ' }],
  [{ kind: 'thought', text: 'ask.' }],
  [{ kind: 'text', text: 'I look' }],
  [{ kind: 'text', text: ' it up.' }],
  [
    { kind: 'call', text: 'weather' },
    { kind: 'arguments', text: '{"city":"Zürich"}' },
  ],
];

export interface Fake {
  backend: Backend;
  instance: FakeSession;
  source: FakeSource;
  llm: QSF;
  /** Makes the next answer of these parts, one list for each token. */
  answers(parts: AnswerPiece[][], why?: End): void;
  /** Makes the next answer one text. */
  says(text: string): void;
  /** The values that the template got for the last answer. */
  values(): { messages: Record<string, unknown>[]; tools?: object[] };
  /** Holds all reads of the model, so that its next answer waits. */
  hold(): void;
  /** Resolves when a held answer waits. */
  waits(): Promise<void>;
  /** Ends the generation that hold() began. */
  release(): void;
}

/** Ends with removeFakeWorker(). */
export async function fakeModel(): Promise<Fake> {
  const backend = installFakeWorker();
  const { engine, instance } = fakeEngine();
  const source = new FakeSource();
  const passes = new Passes(new Runner(engine, source));
  let generation: Generation;
  Object.assign(backend.answers, {
    start: () => reply(() => void (generation = new Generation(engine, passes, turnIn(), backend.starts.at(-1)!))),
    next: () => reply(() => generation.next()),
    stop: () => reply(() => generation.stop(backend.shown.at(-1))),
  });
  const llm = await QSF.load('https://example.org/model.qsf');
  backend.calls.length = 0;
  const answers = (parts: AnswerPiece[][], why: End = 'eos') => {
    const text = (n: number) => (parts[n] ?? []).map((part) => part.text).join('');
    instance.script = { piece: text, parts: (n) => parts[n] ?? [], end: { after: parts.length, why } };
  };
  return {
    ...{ backend, instance, source, llm, answers },
    says: (text) => answers([[{ kind: 'text', text }]]),
    values: () => JSON.parse(instance.chat!.values) as ReturnType<Fake['values']>,
    hold: () => {
      source.mode = 'held';
      instance.script = { reads: () => true };
    },
    waits: () => until(() => source.held > 0),
    release: () => {
      source.mode = 'now';
      instance.script = {};
      source.release();
    },
  };
}
