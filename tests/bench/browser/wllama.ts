// wllama, on the CPU. Its packages are installed for benchmarks only, so what is used of them is declared here.
import type { Engine, Rates, Settings, Work } from './page.js';

interface Loading {
  n_ctx: number;
  n_batch: number;
  n_threads: number;
  n_gpu_layers?: number;
  n_parallel?: number;
}

interface Wllama {
  loadModel(blobs: Blob[], loading: Loading): Promise<void>;
  isMultithread(): boolean;
  getNumThreads(): number;
}

interface Wllama2 extends Wllama {
  _testBenchmark(type: 'pp' | 'tg', n: number): Promise<{ t_ms: number }>;
}

interface Wllama3 extends Wllama {
  createCompletion(request: object): Promise<{
    timings: { prompt_n: number; prompt_ms: number; predicted_n: number; predicted_ms: number };
  }>;
}

interface Package<T> {
  Wllama: new (wasm: Record<string, string>, config: object) => T;
}

const CONTEXT = 512;

async function load<T extends Wllama>(name: string, wasm: Record<string, string>, settings: Settings): Promise<T> {
  const folder = `/tests/bench/node_modules/${name}/esm`;
  const { Wllama } = (await import(`${folder}/index.js`)) as Package<T>;
  const paths = Object.fromEntries(Object.entries(wasm).map(([key, file]) => [key, `${folder}/${file}`]));
  const wllama = new Wllama(paths, { suppressNativeLog: true });
  const model = await (await fetch(settings.gguf)).blob();
  const { threads } = settings;
  await wllama.loadModel([model], {
    n_ctx: CONTEXT,
    n_batch: CONTEXT,
    n_threads: threads,
    n_gpu_layers: 0,
    n_parallel: 1,
  });
  return wllama;
}

const about = (wllama: Wllama) =>
  Promise.resolve({ threads: wllama.getNumThreads(), multithread: wllama.isMultithread() });

const rate = (n: number, ms: number) => n / (ms / 1000);

/** Measured by its own benchmark, inside its WebAssembly. */
export async function openWllama2(settings: Settings): Promise<Engine> {
  const wasm = Object.fromEntries(
    ['single-thread', 'multi-thread'].map((kind) => [`${kind}/wllama.wasm`, `${kind}/wllama.wasm`]),
  );
  const wllama = await load<Wllama2>('wllama-2', wasm, settings);
  return {
    async measure({ prompt, generate }: Work): Promise<Rates> {
      const prefill = await wllama._testBenchmark('pp', prompt);
      const decode = await wllama._testBenchmark('tg', generate);
      return { prefill: rate(prompt, prefill.t_ms), decode: rate(generate, decode.t_ms) };
    },
    about: () => about(wllama),
  };
}

/** Measured by the timings that it gives with every completion. */
export async function openWllama3(settings: Settings): Promise<Engine> {
  const wllama = await load<Wllama3>('wllama-3', { default: 'wasm/wllama.wasm' }, settings);
  const complete = async (words: number, max_tokens: number) => {
    // In the vocabulary of make-random-model every letter is a word and a token; the begin token comes before them.
    const prompt = Array.from({ length: words }, (_, i) => String.fromCharCode(97 + (i % 26))).join(' ');
    const options = { temperature: 0, ignore_eos: true, cache_prompt: false };
    return (await wllama.createCompletion({ prompt, max_tokens, ...options })).timings;
  };
  return {
    async measure({ prompt, generate }: Work): Promise<Rates> {
      const prefill = await complete(prompt - 1, 1);
      if (prefill.prompt_n !== prompt) throw new Error(`wllama-3 counted ${prefill.prompt_n} tokens, not ${prompt}`);
      // Its clock for the generation starts when the first token is there.
      const decode = await complete(1, generate + 1);
      if (decode.predicted_n !== generate + 1) throw new Error(`wllama-3 generated ${decode.predicted_n} tokens`);
      return {
        prefill: rate(prefill.prompt_n, prefill.prompt_ms),
        decode: rate(decode.predicted_n - 1, decode.predicted_ms),
      };
    },
    about: () => about(wllama),
  };
}
