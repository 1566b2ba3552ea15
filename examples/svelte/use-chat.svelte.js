import { QSF } from 'qsf';
import { onDestroy } from 'svelte';

/** Opens a model with the options of load(), and keeps a conversation with the options of conversation(). */
export function useChat(source, load, options) {
  const chat = $state({ status: 'opening', loaded: 0, messages: [], answer: '', error: undefined, send, stop });
  const closing = new AbortController();
  const { signal } = closing;
  let conversation;
  let answering;

  const onProgress = ({ loaded, total }) => (chat.loaded = total > 0 ? loaded / total : 0);
  const loading = QSF.load(source, { ...load, signal, onProgress });
  loading
    .then((llm) => {
      conversation = llm.conversation(options);
      Object.assign(chat, { status: 'ready', messages: conversation.messages });
    })
    .catch((error) => signal.aborted || Object.assign(chat, { status: 'failed', error }));
  onDestroy(() => {
    closing.abort();
    answering?.abort();
    loading.then((llm) => llm.close()).catch(() => {});
  });

  async function send(text) {
    answering = new AbortController();
    const how = { signal: answering.signal };
    const messages = [...conversation.messages, { role: 'user', content: text }];
    Object.assign(chat, { status: 'answering', messages, answer: '', error: undefined });
    try {
      for await (const piece of conversation.send(text, how)) chat.answer += piece;
    } catch (error) {
      if (!how.signal.aborted) chat.error = error;
    }
    Object.assign(chat, { status: 'ready', messages: conversation.messages, answer: '' });
  }

  function stop() {
    answering?.abort();
  }

  return chat;
}
