/**
 * The whole of a body that others send; undefined where it is longer than it may be: the rest is given up,
 * and the stream destroyed. `kept` is told how many bytes are held, whenever there are more.
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
