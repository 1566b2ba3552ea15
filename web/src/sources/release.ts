// The release of used chunks. A browser frees them at its own time, when hundreds of megabytes may be in use. Memory
// that is transferred to a closed port is freed at once.
const nowhere = (() => {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
})();

/**
 * Releases a chunk of a response's body. Keeps a chunk that shares its memory, and one of a response that a script
 * made, whose memory belongs to the script.
 */
export function release(chunk: Uint8Array<ArrayBuffer>, { type }: Response): void {
  const whole = chunk.byteLength === chunk.buffer.byteLength;
  if (whole && type !== 'default') nowhere.postMessage(null, [chunk.buffer]);
}
