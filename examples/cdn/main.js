// From another origin than the page's. Name the version that you mean.
const asked = new URLSearchParams(location.search);
const cdn = asked.get('cdn') ?? 'https://cdn.jsdelivr.net/npm/qsf@0.1.0';
const { MiB, QSF } = await import(`${cdn}/index.js`);

const story = document.querySelector('#story');
const model = asked.get('model') ?? '/stories-8bit.qsf';
try {
  const llm = await QSF.load(model, { memory: 16 * MiB });
  const { engine } = await llm.stats();
  for await (const piece of llm.generate('Once upon a time', { maxTokens: 40, temperature: 0 }))
    story.textContent += piece;
  await llm.close();
  story.title = `${engine.threads} threads`;
} catch (error) {
  story.textContent = error.message;
  story.title = 'failed';
}
