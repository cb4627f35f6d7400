/**
 * Reads the whole of a body that others send. Undefined where it is longer than it may be; the stream is then
 * destroyed. `kept` is called with the number of bytes that are held, whenever there are more.
 */
export async function readWhole(
  body: AsyncIterable<Uint8Array>,
  mostBytes: number,
  kept: (bytes: number) => void = () => {},
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > mostBytes) return undefined;
    pieces.push(piece);
    kept(bytes);
  }
  return Buffer.concat(pieces);
}
