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

/**
 * Reads the body of a request to its end, and keeps it where it is not longer than it may be. Behind a proxy
 * the next request on its connection may be anybody's, and a reply that leaves before the end may be lost
 * (DECISIONS.md#81).
 */
export async function readRequest(
  request: AsyncIterable<Uint8Array>,
  mostBytes: number,
  kept: (bytes: number) => void = () => {},
): Promise<Buffer | undefined> {
  let pieces: Uint8Array[] | undefined = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > mostBytes) pieces = undefined;
    pieces?.push(piece);
    kept(pieces ? bytes : 0);
  }
  return pieces && Buffer.concat(pieces);
}
