import { once } from "node:events";
import { connect, type Socket } from "node:net";

interface Kind {
  readonly opcode?: number;
  readonly isLast?: boolean;
  /** Sets the bit that says that the payload is compressed. */
  readonly isCompressed?: boolean;
  /** What the head says, where that is more than the payload has. */
  readonly length?: number;
}

const mask = Buffer.from([0x11, 0x00, 0xa5, 0xff]);

/** A client's frame of RFC 6455, as it ought to be or not. */
export function frame(
  payload: Buffer | string,
  { opcode = 1, isLast = true, isCompressed = false, length }: Kind = {},
): Buffer {
  const masked = Buffer.from(payload);
  for (let at = 0; at < masked.length; at += 1) masked[at] = (masked[at] ?? 0) ^ (mask[at & 3] ?? 0);
  const size = length ?? masked.length;
  const first = (isLast ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode;
  const head = Buffer.alloc(size < 126 ? 2 : size < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = 0x80 | (size < 126 ? size : size < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(size, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(size), 2);
  return Buffer.concat([head, mask, masked]);
}

export interface RawClient {
  readonly socket: Socket;
  /** The code of the server's close frame, or undefined where it just ended. */
  readonly closed: Promise<number | undefined>;
  /** Resolves once the server has sent this. Its pings may come before. */
  hears(text: string): Promise<void>;
}

/** A WebSocket of nothing but its upgrade. */
export async function openRawClient(url: string): Promise<RawClient> {
  const { host, hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (!answer.toString("latin1").startsWith("HTTP/1.1 101")) throw new Error(answer.toString());
  let code: number | undefined;
  socket.on("data", (chunk: Buffer) => {
    const at = chunk.indexOf(0x88);
    if (at !== -1 && at + 4 <= chunk.length) code = chunk.readUInt16BE(at + 2);
  });
  const hears = (text: string): Promise<void> =>
    new Promise((resolve) => {
      let heard = "";
      socket.on("data", function hear(chunk: Buffer) {
        heard += chunk.toString("latin1");
        if (!heard.includes(text)) return;
        socket.off("data", hear);
        resolve();
      });
    });
  return { socket, hears, closed: new Promise((resolve) => socket.once("close", () => resolve(code))) };
}
