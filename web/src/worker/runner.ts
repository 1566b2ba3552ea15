// The host's loop around an engine: it steps, supplies the requested bytes, and gives the message queue a turn.
import type { Step } from '../boundary.gen.js';
import { asError } from '../errors.js';
import type { ErrorName, QSFError } from '../errors.js';
import type { Engine } from '../wasm/engine.js';
import type { ByteSource } from '../sources/source.js';
import { Signal, tick } from './tick.js';
import { Tracer } from './trace.js';

/** Errors of a file that is damaged or is not a model. */
export const OF_FILE: readonly ErrorName[] = [
  'bad_magic',
  'bad_version',
  'bad_header',
  'bad_index',
  'bad_section',
  'bad_segment',
  'bad_tensor',
  'bad_checksum',
  'bad_compression',
  'bad_tokenizer',
  'truncated',
];
/** Milliseconds of computing between two turns of the message queue. */
const SLICE = 8;
/** Characters of a sentence that the engine is given: it keeps no more. */
const SENTENCE = 640;

/** What guesses tokens for an engine before it steps. */
export interface Guessing {
  /** Gives the engine its guesses, and calls `turn` in between. Undefined if it wants none. */
  guess(turn: () => Promise<void>): Promise<void> | undefined;
  /** Ends guesses for a sequence. */
  stop(sequence: number): void;
}

export class Runner {
  readonly engine: Engine;
  readonly source: ByteSource;
  draft: Guessing | undefined;
  readonly #address: string | undefined;
  /** Bytes handed to the engine. */
  bytes = 0;
  readonly tracer = new Tracer();
  readonly #wake = new Signal();
  #completions = 0;
  #underWay = 0;
  #sliceEnd = 0;
  #failure: QSFError | undefined;
  /** An error that was thrown at the end of a read. It ends the next run(). */
  #broken: QSFError | undefined;

  /** `address` is the source's, if it has one. Errors of the file name it. */
  constructor(engine: Engine, source: ByteSource, address?: string) {
    this.engine = engine;
    this.source = source;
    this.#address = address;
  }

  /** Steps until the engine has a result. Calls `working` after each step without one. Throws the engine's error. */
  async run(working?: () => void): Promise<Step> {
    this.#sliceEnd = performance.now() + SLICE;
    let computing = this.tracer.begin('compute');
    try {
      for (;;) {
        const broken = this.#broken;
        this.#broken = undefined;
        if (broken) throw broken;
        const guessing = this.draft?.guess(() => this.turn());
        if (guessing) {
          this.tracer.end(computing);
          await guessing;
          computing = this.tracer.begin('compute');
        }
        const before = this.#completions;
        const step = this.engine.session.step();
        this.#issue();
        const came = this.source.poll?.(0);
        if (step === 'error') throw this.#original(this.engine.error());
        if (step === 'need_bytes') {
          if (this.#completions === before) {
            this.tracer.end(computing);
            const waiting = this.tracer.begin('wait');
            await this.#bytes(came);
            this.tracer.end(waiting);
            computing = this.tracer.begin('compute');
          }
        } else if (step !== 'working' && step !== 'logits') {
          return step;
        }
        working?.();
        await this.turn();
      }
    } finally {
      this.tracer.end(computing);
    }
  }

  /** Stops the generation or the embedding of a sequence. */
  stop(sequence: number): void {
    this.engine.session.stop(sequence);
    this.draft?.stop(sequence);
  }

  /** Ends a wait for bytes, which nothing may need any more. */
  wake(): void {
    this.#wake.notify();
  }

  /** Lets messages in when the slice of computing is over. */
  async turn(): Promise<void> {
    if (performance.now() < this.#sliceEnd) return;
    await tick();
    this.#sliceEnd = performance.now() + SLICE;
  }

  /** Resolves when no read is under way any more. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await this.#bytes(this.source.poll?.(0));
  }

  /** Waits until a read has ended, or for a while; `came` is poll()'s result. */
  async #bytes(came: boolean | undefined): Promise<void> {
    if (came === false && this.source.poll!(SLICE) === false) await tick();
    else await this.#wake.wait();
  }

  /**
   * Returns the error of a failed read if it is the reason of the engine's error, because it has more details than the
   * engine keeps.
   */
  #original(error: QSFError): QSFError {
    const failure = this.#failure;
    if (failure?.code === error.code && failure.message.startsWith(error.message)) return failure;
    return this.#address !== undefined && OF_FILE.includes(error.code) ? error.at(this.#address) : error;
  }

  #issue(): void {
    for (;;) {
      const request = this.engine.session.nextRequest();
      if (!request) return;
      const { ticket, offset, size, crc, hasCrc } = request;
      this.bytes += size;
      const reads = this.tracer.begin('read', offset);
      const end = (work: () => void) => {
        this.#completions++;
        this.tracer.end(reads);
        work();
      };
      const complete = () => {
        try {
          this.engine.complete(ticket);
        } catch {
          // The engine ends its steps with the same error.
          this.source.rejected(offset, size);
        }
      };
      const fail = (thrown: unknown) => {
        this.#failure = asError(thrown);
        const { code, message } = this.#failure;
        this.engine.fail(ticket, { code, sentence: message.slice(0, SENTENCE) });
      };
      let reading: Promise<void> | undefined;
      try {
        reading = this.source.read({
          offset,
          into: this.engine.target(request),
          crc: hasCrc ? crc : undefined,
          crc32: () => this.engine.crc32(request),
        });
      } catch (thrown) {
        end(() => fail(thrown));
        continue;
      }
      if (!reading) {
        end(complete);
        continue;
      }
      this.#underWay++;
      const landed = (work: () => void) => {
        this.#underWay--;
        try {
          end(work);
        } catch (thrown) {
          this.#broken = asError(thrown);
        }
        this.#wake.notify();
      };
      reading.then(
        () => landed(complete),
        (error: unknown) => landed(() => fail(error)),
      );
    }
  }
}
