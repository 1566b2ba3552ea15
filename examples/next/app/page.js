'use client';

import { MiB, QSF } from 'qsf';
import { useEffect, useState } from 'react';

export default function Page() {
  const [story, setStory] = useState('');
  const [title, setTitle] = useState();

  useEffect(() => {
    const model = new URLSearchParams(location.search).get('model') ?? '/stories-8bit.qsf';
    const leaving = new AbortController();
    tell(model, leaving.signal, setStory).then(setTitle, (error) => {
      if (leaving.signal.aborted) return;
      setStory(error.message);
      setTitle('failed');
    });
    return () => leaving.abort();
  }, []);

  return (
    <pre id="story" title={title}>
      {story}
    </pre>
  );
}

async function tell(model, signal, show) {
  const llm = await QSF.load(model, { memory: 16 * MiB, signal });
  try {
    const { engine } = await llm.stats();
    let story = '';
    for await (const piece of llm.generate('Once upon a time', { maxTokens: 40, temperature: 0, signal }))
      show((story += piece));
    return `${engine.threads} threads`;
  } finally {
    await llm.close();
  }
}
