import type { IncomingMessage } from "node:http";

/** The body as text; undefined where it is longer than it may be. */
export async function readShort(request: IncomingMessage, mostBytes: number): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > mostBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
