// Memory of used chunks. A browser collects it when it pleases, and hundreds of megabytes may lie about before it does; what
// is given to a port that nobody listens at is gone at once.
const nowhere = (() => {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
})();

/** Lets go of a chunk of a response's body, unless its memory is shared or, of a response made by a script, another's. */
export function release(chunk: Uint8Array<ArrayBuffer>, { type }: Response): void {
  const whole = chunk.byteLength === chunk.buffer.byteLength;
  if (whole && type !== 'default') nowhere.postMessage(null, [chunk.buffer]);
}
