/// <reference lib="dom" />
// The WebAssembly module that every browser can run, in Node; and a session in it that is fed from a file in memory.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { checkOptions } from '../../web/src/page/options.js';
import { openOptions, promptOptions, samplerOptions } from '../../web/src/boundary.gen.js';
import type {
  Failure,
  KvType,
  OpenOptions,
  PromptOptions,
  SamplerOptions,
  Session,
  Step,
} from '../../web/src/boundary.gen.js';
import type { SamplingLists } from '../../web/src/contract.js';
import type { EngineModule } from '../../web/src/wasm/engine.js';
import type { CreateMaker, MakerStarter } from '../../web/src/wasm/maker.js';
import type { CreateModule } from '../../web/src/wasm/wasm.js';
import type { Starters } from '../../web/src/worker/model.js';

const root = join(import.meta.dirname, '..', '..');
const PAGE = 65_536;

/** Where models of these tests are. */
export const folder = join(root, 'build', 'parity');

/** A native program. */
export const program = (name: string) => join(root, 'build', 'bin', name);

/** Converts a model; gives the file. */
export function convert(from: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  const out = join(folder, name);
  execFileSync(program('qsf-convert'), [join(root, from), out, '--quant-type', '8bit'], { stdio: 'ignore' });
  return out;
}

/** The built-in model's bytes. */
export const stories = (): Uint8Array => readFileSync(convert('models/stories', 'stories-8bit.qsf'));

/** A function that starts a module, and the module's bytes. */
interface Creator<Create> {
  create: Create;
  wasmBinary: Uint8Array;
}

async function creator<Create>(module: string): Promise<Creator<Create>> {
  // The modules are made for workers, which have an address.
  Object.assign(globalThis, { self: { location: { href: 'https://page.test/' } } });
  const name = join(root, 'build-wasm', 'bin', module);
  const { default: create } = (await import(/* @vite-ignore */ pathToFileURL(`${name}.js`).href)) as {
    default: Create;
  };
  return { create, wasmBinary: readFileSync(`${name}.wasm`) };
}

/** Node 20 has no relaxed SIMD by itself. */
export const moduleCreator = () => creator<CreateModule>('qsf-simd');
export const makerCreator = () => creator<CreateMaker>('qsf-maker');

/** Returns the starters of a worker whose models are .qsf files, or are made by `maker`. */
export const starters = (
  { create, wasmBinary }: Creator<CreateModule>,
  maker: MakerStarter = () => Promise.reject(new Error('there is no maker')),
): Starters => ({
  engine: (_source, _variant, threads, wasmMemory) => create({ wasmMemory, threads, wasmBinary }),
  maker,
});

/** Returns the module with so much memory. */
export async function startModule(bytes: number): Promise<{ module: EngineModule; memory: WebAssembly.Memory }> {
  const { create, wasmBinary } = await moduleCreator();
  const memory = new WebAssembly.Memory({ initial: bytes / PAGE, maximum: bytes / PAGE });
  const module = await create({ wasmMemory: memory, threads: 1, wasmBinary });
  return { module, memory };
}

/** A session with what it reads. */
export class Fed {
  readonly session: InstanceType<EngineModule['Session']>;
  readonly #memory: WebAssembly.Memory;
  readonly #file: Uint8Array;

  constructor({ module, memory }: { module: EngineModule; memory: WebAssembly.Memory }, file: Uint8Array) {
    this.session = new module.Session(1, false);
    this.#memory = memory;
    this.#file = file;
  }

  /** Opens the file with a budget; gives what failed. */
  open(budget: number, options: Partial<OpenOptions> = {}, kv?: KvType): Failure | undefined {
    const failure = this.session.open(budget, this.#file.length, false, kv, checkOptions(openOptions, options));
    if (failure) return failure;
    for (let step = this.step(); step !== 'ready'; step = this.step());
    return undefined;
  }

  /** Steps once and feeds what is asked for; throws what fails. */
  step(): Step {
    const step = this.session.step();
    for (let r = this.session.nextRequest(); r; r = this.session.nextRequest()) {
      new Uint8Array(this.#memory.buffer, r.into, r.size).set(this.#file.subarray(r.offset, r.offset + r.size));
      const failure = this.session.complete(r.ticket);
      if (failure) throw new Error(failure.sentence);
    }
    if (step === 'error') throw new Error(this.session.error().sentence);
    return step;
  }

  /** Sets the lists of sampling; returns the error, if any. */
  sampling({ biases, samplers, breakers }: SamplingLists): Failure | undefined {
    const [names, texts] = [samplers, breakers].map((all) => zeroEnded(all ?? []));
    const pairs = biases.flatMap(([id, bias]) => [ids([id]), new Uint8Array(Float32Array.of(bias).buffer)]);
    stage(this.session, ...pairs, names!, texts!);
    return this.session.sampling(0, biases.length, samplers && names!.length, breakers && texts!.length);
  }

  /** Begins a generation; gives what failed. */
  start(prompt: string | number[], options: Partial<SamplerOptions & PromptOptions> = {}, stops: string[] = []) {
    const body = typeof prompt === 'string' ? new TextEncoder().encode(prompt) : ids(prompt);
    const ends = zeroEnded(stops);
    stage(this.session, body, ends);
    const [size, tokens] = typeof prompt === 'string' ? [body.length, 0] : [0, prompt.length];
    const [sampler, how] = [checkOptions(samplerOptions, options), checkOptions(promptOptions, options)];
    return this.session.start(0, size, tokens, ends.length, sampler, how);
  }

  /** Steps until the generation has ended; gives its tokens and its text. */
  generate(): { tokens: number[]; text: string } {
    const made = { tokens: [] as number[], text: '' };
    for (let step = this.step(); ; step = this.step()) {
      if (step === 'token') made.tokens.push(this.session.token());
      if (step === 'token' || step === 'done') made.text += this.session.piece();
      if (step === 'done') return made;
    }
  }
}

const zeroEnded = (texts: string[]) => new TextEncoder().encode(texts.map((text) => `${text}\0`).join(''));

const ids = (tokens: number[]) => new Uint8Array(Uint32Array.from(tokens).buffer);

/** Puts bytes where the next call reads them. */
export function stage(session: Session, ...parts: Uint8Array[]): void {
  const into = session.stage(parts.reduce((sum, { length }) => sum + length, 0))!;
  let at = 0;
  for (const part of parts) {
    into.set(part, at);
    at += part.length;
  }
}
