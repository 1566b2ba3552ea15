import { QSF } from 'qsf';
import { useEffect, useRef, useState } from 'react';

/**
 * Opens a model with the options of load(), and keeps a conversation with the options of conversation(). Both are read once
 * for each source.
 */
export function useChat(source, load, options) {
  const [state, setState] = useState({ status: 'opening', loaded: 0, messages: [], answer: '', error: undefined });
  const open = useRef(undefined);
  const answering = useRef(undefined);
  const change = (part) => setState((old) => ({ ...old, ...part }));

  useEffect(() => {
    const closing = new AbortController();
    const { signal } = closing;
    const onProgress = ({ loaded, total }) => change({ loaded: total > 0 ? loaded / total : 0 });
    const loading = QSF.load(source, { ...load, signal, onProgress });
    loading
      .then((llm) => {
        if (signal.aborted) return;
        open.current = llm.conversation(options);
        change({ status: 'ready', messages: open.current.messages });
      })
      .catch((error) => signal.aborted || change({ status: 'failed', error }));
    return () => {
      closing.abort();
      answering.current?.abort();
      open.current = undefined;
      loading.then((llm) => llm.close()).catch(() => {});
    };
  }, [source]);

  async function send(text) {
    const conversation = open.current;
    const { signal } = (answering.current = new AbortController());
    change({ status: 'answering', messages: [...conversation.messages, { role: 'user', content: text }], answer: '' });
    let error;
    try {
      let answer = '';
      for await (const piece of conversation.send(text, { signal })) change({ answer: (answer += piece) });
    } catch (thrown) {
      if (!signal.aborted) error = thrown;
    }
    if (open.current === conversation) change({ status: 'ready', messages: conversation.messages, answer: '', error });
  }

  return { ...state, send, stop: () => answering.current?.abort() };
}
