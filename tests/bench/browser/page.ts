// One engine in a page of its own, told by the script what to load and when to measure. Every engine computes the same
// number of tokens from an empty context; what is not arithmetic (loading, the page's own calls) is left out.
import { openQsf } from './qsf.js';
import { firstToken, readAlone } from './streaming.js';
import { openWllama2, openWllama3 } from './wllama.js';

export interface Settings {
  /** Addresses of the model, as each engine wants it. */
  gguf: string;
  qsf: string;
  threads: number;
  /** Bytes for the whole of QSF. */
  memory: number;
  variant?: 'simd' | 'relaxed' | 'relaxedpairs';
  /** Whether the browser keeps the model. Default false. */
  cache?: boolean;
  /** What QSF loads: the address, the file that the page's input has, or a copy of its bytes. Default: the address. */
  from?: 'address' | 'file' | 'blob' | 'buffer';
}

/** Token counts of the two measurements. */
export interface Work {
  prompt: number;
  generate: number;
}

/** Tokens per second. */
export interface Rates {
  prefill: number;
  decode: number;
  /** Bytes that were read for each token that was generated. */
  read?: number;
}

export interface Engine {
  measure(work: Work): Promise<Rates>;
  /** What ran, for the record. */
  about(): Promise<Record<string, string | number | boolean>>;
}

const engines = { qsf: openQsf, 'wllama-2': openWllama2, 'wllama-3': openWllama3 };
export type EngineName = keyof typeof engines;

let engine: Engine | undefined;

const bench = {
  async open(name: EngineName, settings: Settings): Promise<Record<string, string | number | boolean>> {
    engine = await engines[name](settings);
    return engine.about();
  },
  measure: async (work: Work): Promise<Rates> => engine!.measure(work),
  readAlone,
  firstToken,
};

declare global {
  interface Window {
    bench: typeof bench;
  }
}
window.bench = bench;
