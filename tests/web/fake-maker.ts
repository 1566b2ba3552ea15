// A maker without the converter: the model's file has a list of segments, whose bytes are stored in two halves, and a
// made segment is both halves, each byte plus one.
import type { Failure } from '../../web/src/boundary.gen.js';
import { errorNumbers } from '../../web/src/errors.gen.js';
import { crc32 } from '../../web/src/sources/crc32.js';
import type { MakerFiles, MakerModule } from '../../web/src/wasm/maker.js';
import { noise } from './fake-server.js';

/** Bytes of the model's front, which ends with the number of its other file; the made front; and of a segment. */
export const FRONT = 200_000;
export const MADE_FRONT = 1000;
export const SEGMENT = 30_000;
export const SEGMENTS = 20;
/** Bytes between two made segments. */
const GAP = 24;
/** A number that is read by itself for each segment, as scales are. */
const SCALE = 4;
const HALF = SEGMENT / 2;

const beginOf = (segment: number) => MADE_FRONT + segment * (SEGMENT + GAP);
export const MADE_SIZE = beginOf(SEGMENTS - 1) + SEGMENT;

/** The model's file: magic, noise, the segments' scales and halves. */
export function modelFile(): Uint8Array<ArrayBuffer> {
  const bytes = noise(FRONT + SEGMENTS * (SCALE + SEGMENT), 7);
  bytes.set(new TextEncoder().encode('GGUF'));
  return bytes;
}

const scaleAt = (segment: number) => FRONT + segment * (SCALE + SEGMENT);
const runsAt = (segment: number) => [
  { file: 0, offset: scaleAt(segment) + SCALE, size: HALF },
  { file: 0, offset: scaleAt(segment) + SCALE + HALF, size: HALF },
];

/** The made file, whose front has the checksums of all segments. */
export function madeFile(model: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(MADE_SIZE);
  out.set(madeFront(model));
  for (let i = 0; i < SEGMENTS; i++) out.set(madeSegment(model, i), beginOf(i));
  const checksums = Array.from({ length: SEGMENTS }, (_, i) => crc32(madeSegment(model, i)));
  out.set(tablesOf(out, checksums));
  return out;
}

const madeFront = (model: Uint8Array) => model.slice(4, 4 + MADE_FRONT);
const madeSegment = (model: Uint8Array, segment: number) =>
  model.slice(scaleAt(segment) + SCALE, scaleAt(segment) + SCALE + SEGMENT).map((byte) => byte + 1);

function tablesOf(front: Uint8Array, checksums: readonly number[]): Uint8Array {
  const tables = front.slice(0, 200);
  tables.set(new Uint8Array(Uint32Array.from(checksums).buffer), 100);
  return tables;
}

export const segments = Array.from({ length: SEGMENTS }, (_, i) => ({
  offset: beginOf(i),
  size: SEGMENT,
  crc: 0,
}));

/** What all makers of a test did. */
export class FakeMakers {
  started = 0;
  /** Calls by name, in order. */
  readonly calls: string[] = [];
  /** Fails each plan. */
  refuses: Failure | undefined;
  traps = false;
  /** A file that is looked for next to the first one. */
  other: string | undefined;
  /** Looks for config.json next to a file that does not begin as a GGUF does. */
  recognizes = false;
  /** The types that makers were begun with. */
  readonly types: string[] = [];
  /** The sizes of all files, as plan() saw them. */
  sizes: number[] = [];

  readonly start = async (): Promise<MakerModule> => {
    this.started++;
    return new FakeMaker(this);
  };
}

class FakeMaker implements MakerModule {
  readonly #all: FakeMakers;
  #files!: MakerFiles;
  /** As plan() or restore() got it. */
  #front: Uint8Array = new Uint8Array();
  /** Results until the next call. */
  readonly #raw = new Uint8Array(SEGMENT);

  constructor(all: FakeMakers) {
    this.#all = all;
  }

  begin(files: MakerFiles, quantType: string): void {
    this.#all.types.push(quantType);
    this.#files = files;
  }

  plan(name: string): Failure | undefined {
    const read = this.#open('plan', name);
    if (read instanceof Uint8Array) this.#front = madeFront(read);
    return read instanceof Uint8Array ? undefined : read;
  }

  restore(name: string, front: Uint8Array, size: number, checked: Uint8Array): Failure | undefined {
    if (front.length !== MADE_FRONT || size !== MADE_SIZE || checked.length !== SEGMENTS)
      return failed('no such front');
    const read = this.#open('restore', name);
    this.#front = front;
    return read instanceof Uint8Array ? undefined : read;
  }

  /** Reads the front as a GGUF is read, in pieces of growing size, then the scales. */
  #open(call: string, name: string): Uint8Array | Failure {
    this.#all.calls.push(call);
    if (this.#all.traps) throw new WebAssembly.RuntimeError('unreachable');
    const file = this.#files.find(name);
    if (file < 0) return failed(`no ${name}`);
    const magic = new Uint8Array(4);
    if (this.#all.recognizes && !this.#files.read(file, 0, magic)) return failed('not there yet');
    if (this.#all.recognizes && magic[0] !== 71 && this.#files.find('config.json') < 0) return failed('of no kind');
    const front = new Uint8Array(FRONT);
    for (let at = 0, size = 50_000; at < FRONT; at += size) {
      size = Math.min(size, FRONT - at);
      if (!this.#files.read(file, at, front.subarray(at, at + size))) return failed('not there yet');
    }
    for (let i = 0; i < SEGMENTS; i++)
      if (!this.#files.read(file, scaleAt(i), new Uint8Array(SCALE))) return failed('not there yet');
    if (this.#all.refuses) return this.#all.refuses;
    const other = this.#all.other === undefined ? -1 : this.#files.find(this.#all.other);
    this.#all.sizes = [file, ...(other < 0 ? [] : [other])].map((number) => this.#files.size(number));
    return front;
  }

  kind(): string {
    return 'GGUF';
  }
  size(): number {
    return MADE_SIZE;
  }
  front(): Uint8Array {
    return this.#front;
  }
  warnings(): string[] {
    return ['the model is odd.'];
  }
  segments(): number[] {
    return segments.flatMap(({ offset, size }) => [offset, size]);
  }
  runs(segment: number): number[] {
    return runsAt(segment).flatMap(({ file, offset, size }) => [file, offset, size]);
  }
  make(segment: number): Uint8Array | Failure {
    this.#all.calls.push(`make ${segment}`);
    return this.part(segment, 0, SEGMENT);
  }
  part(segment: number, begin: number, size: number): Uint8Array | Failure {
    const out = this.#raw.subarray(0, size);
    if (!this.#files.read(0, scaleAt(segment) + SCALE + begin, out)) return failed('not there yet');
    out.forEach((byte, i) => (out[i] = byte + 1));
    return out;
  }
  tables(checksums: readonly number[]): Uint8Array {
    this.#all.calls.push('tables');
    return tablesOf(this.#front, checksums);
  }
  memory(): number {
    return 1 << 20;
  }
}

const failed = (sentence: string): Failure => ({ code: errorNumbers.bad_input, sentence });
