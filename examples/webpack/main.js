import { MiB, QSF } from 'qsf';

async function tell(story) {
  const model = new URLSearchParams(location.search).get('model') ?? '/stories-8bit.qsf';
  const llm = await QSF.load(model, { memory: 16 * MiB });
  const { engine } = await llm.stats();
  for await (const piece of llm.generate('Once upon a time', { maxTokens: 40, temperature: 0 }))
    story.textContent += piece;
  await llm.close();
  story.title = `${engine.threads} threads`;
}

const story = document.querySelector('#story');
tell(story).catch((error) => {
  story.textContent = error.message;
  story.title = 'failed';
});
