// The answer of a chat model to a question, from the passages that were found.

import type { ChatMessage, QSF } from 'qsf';
import { messageWith } from 'qsf/retrieval';
import { copy, smallButton } from '../buttons.js';
import { AnswerView } from '../message.js';
import type { Hit } from './library.js';

/** Tokens of an answer: at most, and the part of the context that it has at least. */
const LENGTH = 512;
const ROOM = 1 / 4;

/** Returns the message to which as many of the passages belong as the context has room for, and their number. */
export async function messageFitting(
  llm: Pick<QSF, 'render' | 'tokenize' | 'stats'>,
  question: string,
  hits: readonly Hit[],
): Promise<{ messages: ChatMessage[]; used: number }> {
  const { maxSeqLen } = (await llm.stats()).plan;
  const room = maxSeqLen - Math.min(LENGTH, Math.floor(maxSeqLen * ROOM));
  for (let used = hits.length; ; used--) {
    const passages = hits.slice(0, used).map(({ file, text }) => ({ name: file.name, text }));
    const messages = [{ role: 'user', content: messageWith(question, passages) }];
    if (used === 0) return { messages, used };
    const prompt = await llm.render(messages);
    if ((await llm.tokenize(prompt)).length <= room) return { messages, used };
  }
}

/** Writes the answer into `into`. Rejects with the signal's reason, or with an error of the model. */
export async function answerInto(
  into: HTMLElement,
  llm: QSF,
  model: string,
  question: string,
  hits: readonly Hit[],
  signal: AbortSignal,
  report: (words: string) => void,
): Promise<void> {
  const { messages, used } = await messageFitting(llm, question, hits);
  if (used === 0) throw new Error(`the context of ${model} has no room for a passage and an answer`);
  const view = new AnswerView(model, () => undefined);
  into.replaceChildren(view.element);
  const from = used === 1 ? 'from the first passage' : `from the first ${used} passages`;
  let words = '';
  try {
    const stream = llm.chat(messages, {
      ...{ maxTokens: LENGTH, signal },
      onPromptProgress: ({ done, total }) => report(done < total ? `Reading ${done} of ${total} tokens …` : ''),
    });
    for await (const part of stream.parts()) {
      report('');
      if (part.type !== 'call') view.add(part.type, part.text);
    }
    words = `${model}, ${from}`;
  } catch (error) {
    words = signal.aborted ? 'stopped' : '';
    throw error;
  } finally {
    const copies = smallButton('Copy', () => void copy(view.text, copies));
    view.end(words, ...(view.text === '' ? [] : [copies]));
  }
}
