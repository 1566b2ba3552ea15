// The host's loop around an engine: it steps, feeds what the engine asks for, and gives the message queue a turn.
import type { Step } from './boundary.gen.js';
import { QSFError, errorInfo } from './errors.js';
import type { Engine } from './engine.js';
import type { ByteSource } from './sources/source.js';
import { Signal, tick } from './tick.js';
import { Tracer } from './trace.js';

/** Milliseconds of computing between two turns of the message queue. */
const SLICE = 8;

export class Runner {
  readonly engine: Engine;
  readonly source: ByteSource;
  /** Bytes handed to the engine. */
  bytes = 0;
  readonly tracer = new Tracer();
  readonly #wake = new Signal();
  #completions = 0;
  #underWay = 0;
  #sliceEnd = 0;
  /** What came without being waited for may have been wrong; it is the engine who tells. */
  #stopped = false;
  #failure: QSFError | undefined;

  constructor(engine: Engine, source: ByteSource) {
    this.engine = engine;
    this.source = source;
  }

  /** Ends the current or next run() soon, as 'stopped'. */
  stop(): void {
    this.#stopped = true;
    this.#wake.notify();
  }

  /** Steps until the engine has something to say or stop() is called. Throws the engine's error. */
  async run(): Promise<Step | 'stopped'> {
    this.#sliceEnd = performance.now() + SLICE;
    let computing = this.tracer.begin('compute');
    try {
      for (;;) {
        if (this.#stopped) {
          this.#stopped = false;
          return 'stopped';
        }
        const before = this.#completions;
        const step = this.engine.step();
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
        await this.turn();
      }
    } finally {
      this.tracer.end(computing);
    }
  }

  /** Lets messages in when the slice of computing is over. */
  async turn(): Promise<void> {
    if (performance.now() < this.#sliceEnd) return;
    await tick();
    this.#sliceEnd = performance.now() + SLICE;
  }

  /** Forgets a stop that nothing was left to obey. */
  rearm(): void {
    this.#stopped = false;
  }

  /** Resolves when no read is under way any more. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await this.#bytes(this.source.poll?.(0));
  }

  /** Waits until a read has ended, or a while; `came` is what poll() gave. */
  async #bytes(came: boolean | undefined): Promise<void> {
    if (came === false && this.source.poll!(SLICE) === false) await tick();
    else await this.#wake.wait();
  }

  /** What a read failed with, where that is what the engine ended with: it knows more than the engine keeps. */
  #original(error: QSFError): QSFError {
    const failure = this.#failure;
    return failure?.code === error.code && failure.message.startsWith(error.message) ? failure : error;
  }

  #issue(): void {
    for (;;) {
      const request = this.engine.nextRequest();
      if (!request) return;
      const { ticket, offset, size, crc, hasCrc } = request;
      this.bytes += size;
      const reads = this.tracer.begin('read', offset);
      const reading = this.source.read({
        offset,
        into: this.engine.target(request),
        crc: hasCrc ? crc : undefined,
        crc32: () => this.engine.crc32(request),
      });
      const complete = () => {
        this.#completions++;
        this.tracer.end(reads);
        try {
          this.engine.complete(ticket);
        } catch {
          // The engine ends its steps with the same error.
          this.source.rejected(offset, size);
        }
      };
      if (!reading) {
        complete();
        continue;
      }
      this.#underWay++;
      const landed = (work: () => void) => {
        this.#underWay--;
        work();
        this.#wake.notify();
      };
      reading.then(
        () => landed(complete),
        (error: unknown) =>
          landed(() => {
            this.#completions++;
            this.tracer.end(reads);
            if (error instanceof QSFError) this.#failure = error;
            this.engine.fail(ticket, errorInfo(error));
          }),
      );
    }
  }
}
