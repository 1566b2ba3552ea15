// Small models of the Hugging Face Hub that this engine runs. Nothing of them is in this package, and each has the licence
// of its owner.
import { MiB } from './constants.js';

/** A model of the list QSF.models. */
export interface SuggestedModel {
  /** Its name in this list. */
  readonly id: string;
  /** A name for readers. */
  readonly title: string;
  /** `chat`: it answers messages. `embedding`: it makes vectors of texts. `rerank`: it scores texts for a query. */
  readonly use: 'chat' | 'embedding' | 'rerank';
  /** A sentence about its strengths. */
  readonly about: string;
  /** The argument of QSF.load(). */
  readonly source: string;
  /** The licence of its owner, by its SPDX identifier if it has one. */
  readonly licence: string;
  /** Weights, about. */
  readonly parameters: number;
  /** Bytes that the first visit fetches, about. */
  readonly bytes: number;
  /** Bytes of the weights in memory, about: those of a GGUF file as they are, others in 8.5 bits each. */
  readonly weightBytes: number;
  /**
   * Bytes of `memory` with which all weights are expected to stay in memory: nine eighths of their bytes and 48 MiB, in
   * whole MiB. With less, the rest is streamed. `expected.residentMemory` of a Progress is exact.
   */
  readonly memory: number;
  /** Tokens of the longest context that it was made for. */
  readonly contextLength: number;
  /** Texts that an embedding model expects before each query and before each passage, if it expects any. */
  readonly prefixes?: { readonly query: string; readonly passage: string };
}

type Row = Omit<SuggestedModel, 'weightBytes' | 'memory'>;

const rows: readonly Row[] = [
  {
    ...{ id: 'smollm2-135m', title: 'SmolLM2 135M', use: 'chat', licence: 'Apache-2.0' },
    about: 'The quickest to fetch. Short answers in English.',
    source: 'hf:bartowski/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct-Q8_0.gguf',
    ...{ parameters: 135e6, bytes: 145e6, contextLength: 8192 },
  },
  {
    ...{ id: 'lfm2-350m', title: 'LFM2 350M', use: 'chat', licence: 'LFM Open License v1.0' },
    about: 'Quick for its size. Several languages.',
    source: 'hf:LiquidAI/LFM2-350M-GGUF/LFM2-350M-Q4_K_M.gguf',
    ...{ parameters: 354e6, bytes: 229_309_376, contextLength: 32_768 },
  },
  {
    ...{ id: 'granite-4.0-350m', title: 'Granite 4.0 350M', use: 'chat', licence: 'Apache-2.0' },
    about: 'Instructions and tools, in several languages.',
    source: 'hf:ibm-granite/granite-4.0-350m-GGUF/granite-4.0-350m-Q4_K_M.gguf',
    ...{ parameters: 352e6, bytes: 236_985_760, contextLength: 32_768 },
  },
  {
    ...{ id: 'gemma-3-270m', title: 'Gemma 3 270M', use: 'chat', licence: 'Gemma Terms of Use' },
    about: 'Short, plain answers in many languages.',
    source: 'hf:ggml-org/gemma-3-270m-it-GGUF/gemma-3-270m-it-Q8_0.gguf',
    ...{ parameters: 268e6, bytes: 292e6, contextLength: 32_768 },
  },
  {
    ...{ id: 'smollm2-360m', title: 'SmolLM2 360M', use: 'chat', licence: 'Apache-2.0' },
    about: 'Better answers in English, still quick.',
    source: 'hf:HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/smollm2-360m-instruct-q8_0.gguf',
    ...{ parameters: 362e6, bytes: 386e6, contextLength: 8192 },
  },
  {
    ...{ id: 'qwen2.5-0.5b', title: 'Qwen2.5 0.5B', use: 'chat', licence: 'Apache-2.0' },
    about: 'Many languages, some code, tools.',
    source: 'hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf',
    ...{ parameters: 494e6, bytes: 491e6, contextLength: 32_768 },
  },
  {
    ...{ id: 'qwen3-0.6b', title: 'Qwen3 0.6B', use: 'chat', licence: 'Apache-2.0' },
    about: 'Thinks before it answers. Tools, many languages.',
    source: 'hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf',
    ...{ parameters: 596e6, bytes: 639_446_688, contextLength: 32_768 },
  },
  {
    ...{ id: 'gemma-3-1b', title: 'Gemma 3 1B', use: 'chat', licence: 'Gemma Terms of Use' },
    about: 'Good texts in many languages.',
    source: 'hf:ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf',
    ...{ parameters: 1e9, bytes: 806e6, contextLength: 32_768 },
  },
  {
    ...{ id: 'llama-3.2-1b', title: 'Llama 3.2 1B', use: 'chat', licence: 'Llama 3.2 Community License' },
    about: 'Summaries, rewriting and dialogue.',
    source: 'hf:bartowski/Llama-3.2-1B-Instruct-GGUF/Llama-3.2-1B-Instruct-Q4_K_M.gguf',
    ...{ parameters: 1.24e9, bytes: 807_694_464, contextLength: 131_072 },
  },
  {
    ...{ id: 'smollm2-1.7b', title: 'SmolLM2 1.7B', use: 'chat', licence: 'Apache-2.0' },
    about: 'Instructions and texts in English.',
    source: 'hf:HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF/smollm2-1.7b-instruct-q4_k_m.gguf',
    ...{ parameters: 1.71e9, bytes: 1_056e6, contextLength: 8192 },
  },
  {
    ...{ id: 'qwen2.5-1.5b', title: 'Qwen2.5 1.5B', use: 'chat', licence: 'Apache-2.0' },
    about: 'Many languages, code, JSON and tools.',
    source: 'hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf',
    ...{ parameters: 1.54e9, bytes: 1_117_320_736, contextLength: 32_768 },
  },
  {
    ...{ id: 'qwen3-1.7b', title: 'Qwen3 1.7B', use: 'chat', licence: 'Apache-2.0' },
    about: 'Thinks longer before it answers. Tools, many languages.',
    source: 'hf:Qwen/Qwen3-1.7B-GGUF/Qwen3-1.7B-Q8_0.gguf',
    ...{ parameters: 1.72e9, bytes: 1_834_426_016, contextLength: 32_768 },
  },
  {
    ...{ id: 'all-minilm-l6-v2', title: 'all-MiniLM-L6-v2', use: 'embedding', licence: 'Apache-2.0' },
    about: 'Sentences in English, 384 values each.',
    source: 'hf:sentence-transformers/all-MiniLM-L6-v2',
    ...{ parameters: 22.7e6, bytes: 91e6, contextLength: 512 },
  },
  {
    ...{ id: 'bge-small-en-v1.5', title: 'BGE small 1.5', use: 'embedding', licence: 'MIT' },
    about: 'Search in English, 384 values each.',
    source: 'hf:BAAI/bge-small-en-v1.5',
    ...{ parameters: 33.4e6, bytes: 134e6, contextLength: 512 },
    prefixes: { query: 'Represent this sentence for searching relevant passages: ', passage: '' },
  },
  {
    ...{ id: 'modernbert-embed', title: 'ModernBERT Embed', use: 'embedding', licence: 'Apache-2.0' },
    about: 'Search in long English texts, 768 values each.',
    source: 'hf:nomic-ai/modernbert-embed-base',
    ...{ parameters: 149e6, bytes: 596e6, contextLength: 8192 },
    prefixes: { query: 'search_query: ', passage: 'search_document: ' },
  },
  {
    ...{ id: 'ms-marco-minilm-l6-v2', title: 'MS MARCO MiniLM L6', use: 'rerank', licence: 'Apache-2.0' },
    about: 'Orders passages for a question in English.',
    source: 'hf:cross-encoder/ms-marco-MiniLM-L6-v2',
    ...{ parameters: 22.7e6, bytes: 91e6, contextLength: 512 },
  },
];

/** The models, smallest first for each use. */
export const models: readonly SuggestedModel[] = Object.freeze(
  rows.map((row) => {
    const weightBytes = row.source.endsWith('.gguf') ? row.bytes : Math.round((row.parameters * 8.5) / 8);
    const memory = (Math.ceil((weightBytes * 9) / 8 / MiB) + 48) * MiB;
    return Object.freeze({ ...row, weightBytes, memory });
  }),
);
