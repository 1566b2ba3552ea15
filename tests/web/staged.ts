// The lists of sampling as the engine gets them in memory.
import type { SamplerKind } from '../../web/src/boundary.gen.js';
import type { SamplingLists } from '../../web/src/contract.js';

/** The number of biases, and the bytes of the names and of the texts. */
export type StagedSizes = [biases: number, samplers: number | undefined, breakers: number | undefined];

/** Returns the lists at the beginning of the bytes: pairs of an id and a float, and texts with a zero byte each. */
export function stagedLists(
  bytes: Uint8Array<ArrayBuffer>,
  ...[biases, samplers, breakers]: StagedSizes
): SamplingLists {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const texts = (begin: number, size: number | undefined) =>
    size === undefined
      ? undefined
      : new TextDecoder()
          .decode(bytes.subarray(begin, begin + size))
          .split('\0')
          .slice(0, -1);
  return {
    biases: Array.from({ length: biases }, (_, i) => [view.getUint32(8 * i, true), view.getFloat32(8 * i + 4, true)]),
    samplers: texts(8 * biases, samplers) as SamplerKind[] | undefined,
    breakers: texts(8 * biases + (samplers ?? 0), breakers),
  };
}
