import { once } from "node:events";
import { connect, type Socket } from "node:net";

/**
 * A client of an X server that knows just enough of the core protocol (X11R7 protocol, chapters 1, 8 and
 * appendix B).
 */
export interface XClient {
  readonly root: number;
  /** Sends a request and waits for its reply. Throws on an X error, and when the server goes. */
  ask(request: Buffer): Promise<Buffer>;
  /** Sends a request that has no reply. */
  send(request: Buffer): void;
  close(): void;
}

/** Every number in requests and replies is little-endian, as the setup asks. */
export const cards = (bytes: 2 | 4, ...values: readonly number[]): Buffer => {
  const made = Buffer.alloc(bytes * values.length);
  values.forEach((value, at) => made.writeUIntLE(value, at * bytes, bytes));
  return made;
};

/** Fills up to a multiple of four bytes. */
export const padded = (text: Buffer): Buffer =>
  Buffer.concat([text, Buffer.alloc((4 - (text.length % 4)) % 4)]);

/** A request: opcode, a byte that depends on it, and its length in units of four bytes. */
export function request(opcode: number, detail: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([opcode, detail]), cards(2, 1 + body.length / 4), body]);
}

const authorisation = Buffer.from("MIT-MAGIC-COOKIE-1");
const setupHead = 8;
const messageBytes = 32;
/**
 * No answer to our questions is nearly as long; the server runs beside a browser and is trusted as little.
 */
const mostBytes = 2 ** 16;

export async function openXClient(path: string, cookie: Buffer): Promise<XClient> {
  const socket = connect(path);
  await once(socket, "connect");
  // A socket that fails later fails the read that waits for it.
  socket.on("error", () => {});
  const read = makeReader(socket);
  const hello = [
    Buffer.from("l\0"),
    cards(2, 11, 0, authorisation.length, cookie.length, 0),
    padded(authorisation),
    padded(cookie),
  ];
  socket.write(Buffer.concat(hello));
  const setup = await read(setupHead, (head) => setupHead + 4 * head.readUInt16LE(6));
  if (setup[0] !== 1) throw new Error("the X server does not let us in");
  return {
    root: rootIn(setup),
    send: (given) => void socket.write(given),
    async ask(given) {
      socket.write(given);
      return await replyFrom(read);
    },
    close: () => socket.destroy(),
  };
}

/** The root window of the first screen, behind the vendor's name and the list of pixel formats. */
function rootIn(setup: Buffer): number {
  const [vendorBytes, formats] = [setup.readUInt16LE(24), setup.readUInt8(29)];
  return setup.readUInt32LE(40 + 4 * Math.ceil(vendorBytes / 4) + 8 * formats);
}

async function replyFrom(read: MessageReader): Promise<Buffer> {
  for (;;) {
    const message = await read(
      messageBytes,
      (head) => messageBytes + (head[0] === 1 ? 4 * head.readUInt32LE(4) : 0),
    );
    if (message[0] === 0) throw new Error(`X error ${message[1]}`);
    // Every other message is an event.
    if (message[0] === 1) return message;
  }
}

/** Reads one message: its head says how long it is. */
type MessageReader = (headBytes: number, wholeBytes: (head: Buffer) => number) => Promise<Buffer>;

function makeReader(socket: Socket): MessageReader {
  const chunks = (socket as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  const fill = async (bytes: number): Promise<void> => {
    if (bytes > mostBytes) throw new Error(`the X server announced ${bytes} bytes`);
    while (held.length < bytes) {
      const { done, value } = await chunks.next();
      if (done) throw new Error("the X server is gone");
      held = Buffer.concat([held, value]);
    }
  };
  return async (headBytes, wholeBytes) => {
    await fill(headBytes);
    const bytes = wholeBytes(held);
    await fill(bytes);
    const message = held.subarray(0, bytes);
    held = held.subarray(bytes);
    return message;
  };
}
