import { nearest, passagesOf } from 'qsf/retrieval';

/** Texts that some models expect before a question and before a passage; models of QSF.models state them. */
const NONE = { query: '', passage: '' };

/** A search in texts by the embeddings of an open model. An application would also keep texts and vectors in IndexedDB. */
export class Search {
  #llm;
  #prefixes;
  #passages = [];
  #vectors = [];

  constructor(llm, prefixes = NONE) {
    this.#llm = llm;
    this.#prefixes = prefixes;
  }

  /** The number of passages. */
  get size() {
    return this.#passages.length;
  }

  async add(name, text) {
    const passages = passagesOf(text, { length: 400 });
    const texts = passages.map((passage) => this.#prefixes.passage + passage.text);
    this.#vectors.push(...(await this.#llm.embed(texts)));
    this.#passages.push(...passages.map((passage) => ({ name, text: passage.text })));
  }

  /** Returns the nearest passages, the best one first. */
  async find(question, most) {
    const query = await this.#llm.embed(this.#prefixes.query + question);
    return nearest(query, this.#vectors, most).map(({ index, score }) => ({ ...this.#passages[index], score }));
  }
}
