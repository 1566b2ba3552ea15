// The package comes from another origin than the page. Name the version that you mean.
const PACKAGE = 'https://cdn.jsdelivr.net/npm/qsf@0.1.0';

async function tell(story) {
  const asked = new URLSearchParams(location.search);
  const model = asked.get('model') ?? '/stories-8bit.qsf';
  const { MiB, QSF } = await import(`${asked.get('cdn') ?? PACKAGE}/index.js`);
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
