import { MiB } from 'qsf';
import { useState } from 'react';

import { useChat } from './use-chat.js';

const model = new URLSearchParams(location.search).get('model') ?? '/stories-8bit.qsf';

// The built-in model continues stories, so this template passes the message on. Models for chats have templates of their own.
const options = { template: '{{ messages[-1].content }}', maxTokens: 40, temperature: 0 };

export function Chat() {
  const { status, loaded, messages, answer, error, send, stop } = useChat(model, { memory: 16 * MiB }, options);
  const [text, setText] = useState('');

  function submit(event) {
    event.preventDefault();
    if (status !== 'ready' || text.trim() === '') return;
    void send(text);
    setText('');
  }

  return (
    <main>
      <ol aria-live="polite" aria-busy={status === 'answering'}>
        {messages.map(({ role, content }, i) => (
          <li key={i} className={role}>
            {content}
          </li>
        ))}
        {answer !== '' && <li className="assistant">{answer}</li>}
      </ol>
      {status === 'opening' && <progress value={loaded} aria-label="Opening the model" />}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {status === 'answering' ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button disabled={status !== 'ready'}>Send</button>
        )}
      </form>
    </main>
  );
}
