// node openai.js MODEL: the same story by the calls of OpenAI's client.
import { MiB, QSF } from 'qsf';

const llm = await QSF.load(process.argv[2] ?? 'stories-8bit.qsf', { memory: 16 * MiB });
const story = { prompt: 'Once upon a time', max_tokens: 40, temperature: 0, stream: true };
for await (const { choices } of await llm.completions.create(story)) process.stdout.write(choices[0].text);
await llm.close();
