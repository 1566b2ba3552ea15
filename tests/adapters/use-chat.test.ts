// qsf/ai-sdk, with the published hook of the AI SDK for React: a conversation that stays in the page.
import { DirectChatTransport, ToolLoopAgent, tool } from 'ai';
import type { UIMessage } from 'ai';
import { JSDOM } from 'jsdom';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { languageModel } from '../../web/src/ai-sdk.js';
import { removeFakeWorker } from '../web/fake-worker.js';
import { until } from '../web/fake-engine.js';
import { ANSWER, fakeModel } from './model.js';
import type { Fake } from './model.js';

const { window } = new JSDOM('<div id="root"></div>');
// React reads them when it is loaded, and after the end of a test.
for (const name of ['window', 'document', 'navigator'] as const)
  Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
const { createElement } = await import('react');
const { createRoot } = await import('react-dom/client');
const { useChat } = await import('@ai-sdk/react');

const weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ in: city, is: 'sunny' }),
});

type Helpers = ReturnType<typeof useChat>;

let fake: Fake;
let chat: Helpers;
let root: ReturnType<typeof createRoot>;
let status: string[];
beforeEach(async () => {
  fake = await fakeModel();
  const agent = new ToolLoopAgent({
    model: languageModel(fake.llm),
    tools: { weather },
    maxRetries: 0,
    maxOutputTokens: 9,
  });
  const transport = new DirectChatTransport({ agent }) as never;
  status = [];
  const Chat = () => {
    chat = useChat({ transport });
    if (status.at(-1) !== chat.status) status.push(chat.status);
    const texts = chat.messages.map((message, i) =>
      createElement('li', { key: i, className: message.role }, textOf(message)),
    );
    return createElement('ol', null, texts);
  };
  root = createRoot(window.document.getElementById('root')!);
  root.render(createElement(Chat));
  await until(() => status.includes('ready'));
});
afterEach(async () => {
  root.unmount();
  removeFakeWorker();
});

const textOf = ({ parts }: UIMessage) => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
const shown = () =>
  Array.from(window.document.querySelectorAll('li'), ({ className, textContent }) => [className, textContent]);

describe('useChat() with a transport in the page', () => {
  it('shows a message and its answer as it is written, and keeps the conversation', async () => {
    await chat.sendMessage({ text: 'Hello' });
    await until(() => chat.status === 'ready');
    expect(status).toEqual(['ready', 'submitted', 'streaming', 'ready']);
    const answer = '<0><1><2><3><4><5><6><7><8>';
    expect(shown()).toEqual([
      ['user', 'Hello'],
      ['assistant', answer],
    ]);
    fake.says('And on.');
    await chat.sendMessage({ text: 'More' });
    await until(() => shown().length === 4);
    expect(fake.values().messages).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: answer },
      { role: 'user', content: 'More' },
    ]);
  });

  it('runs tools, and shows thoughts, calls and results as parts', async () => {
    fake.answers(ANSWER);
    const first = fake.backend.answers.start;
    let rounds = 0;
    fake.backend.answers.start = () => {
      if (rounds++ === 1) fake.says('Sunny.');
      return first();
    };
    await chat.sendMessage({ text: 'Weather?' });
    await until(() => chat.status === 'ready');
    expect(chat.messages[1]!.parts.filter(({ type }) => type !== 'step-start')).toMatchObject([
      { type: 'reasoning', text: 'They ask.' },
      { type: 'text', text: 'I look it up.' },
      { type: 'tool-weather', input: { city: 'Zürich' }, output: { in: 'Zürich', is: 'sunny' } },
      { type: 'text', text: 'Sunny.' },
    ]);
  });

  it('stops, and is ready for the next message', async () => {
    fake.hold();
    const asked = chat.sendMessage({ text: 'Hello' });
    await fake.waits();
    await chat.stop();
    await asked;
    fake.release();
    await until(() => chat.status === 'ready');
    fake.says('Here.');
    await chat.sendMessage({ text: 'Again' });
    await until(() => textOf(chat.messages.at(-1)!) === 'Here.');
  });

  it('shows an error of the engine', async () => {
    fake.instance.refuse.start = { code: 'context_full', sentence: 'Too long.' };
    await chat.sendMessage({ text: 'Hello' });
    await until(() => chat.status === 'error');
    expect(chat.error).toBeInstanceOf(Error);
  });
});
