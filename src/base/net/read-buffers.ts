import type { OnReadOpts, Socket } from "node:net";

/** As much as Node.js reads at once. */
const bufferBytes = 64 * 1024;
/** After a read of this length more are expected to follow at once. */
const bulkBytes = 16 * 1024;
/** So many may be in use at once (8 MiB); what is read beyond is copied. */
const mostLent = 128;
/** So many are kept for later. */
const mostKept = 32;

/** Called once, with an error where the bytes were not written. */
type WrittenCallback = (error?: Error | null) => void;
/** Takes what was read. The bytes are there until `written` is called, and another's afterwards. */
type Taker = (chunk: Buffer, written?: WrittenCallback) => void;

/**
 * All sockets read into this one but those that hand much on: each read is copied out of it before there is
 * another. So a socket at rest has no buffer of its own.
 */
const common: Buffer = Buffer.allocUnsafeSlow(bufferBytes);

const kept: Buffer[] = [];
let lent = 0;

function lend(): Buffer {
  if (lent >= mostLent) return common;
  lent += 1;
  return kept.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
}

/** What is in it must not be needed any more, by anybody. */
function giveBack(buffer: Buffer): void {
  lent -= 1;
  if (kept.length < mostKept) kept.push(buffer);
}

/** It is left to the collector: who has it now is not known for certain. */
function forget(): void {
  lent -= 1;
}

const readings = new WeakMap<Socket, SocketReading>();

/**
 * How one socket reads. Node.js takes a new buffer for each read, and V8 before 14.8 marks all of its heap
 * after some 64 MiB of them (Node.js 24 and 26). Until somebody takes what it reads the socket is as any
 * other.
 */
class SocketReading {
  readonly onread: OnReadOpts = { buffer: () => this.#buffer, callback: (bytes) => this.#read(bytes) };
  #buffer: Buffer = common;
  #socket: Socket | undefined;
  #taker: Taker | undefined;

  belongTo(socket: Socket): void {
    this.#socket = socket;
    socket.once("close", () => this.#leave());
  }

  handTo(taker: Taker | undefined): void {
    this.#taker = taker;
  }

  /** Node.js asks for the buffer of the next read when this returns; with `false` it reads no more. */
  #read(bytes: number): boolean {
    const [socket, buffer, taker] = [this.#socket, this.#buffer, this.#taker];
    const chunk = buffer.subarray(0, bytes);
    const isNext = taker && bytes >= bulkBytes;
    // What was read before goes first, and who has paused the socket gets nothing.
    const isFree = socket?.readableFlowing === true && socket.readableLength === 0;
    if (taker && isFree && buffer !== common) {
      this.#buffer = isNext ? lend() : common;
      taker(chunk, (error) => (error ? forget() : giveBack(buffer)));
      return true;
    }
    const copy = Buffer.from(chunk);
    if (isNext && buffer === common) this.#buffer = lend();
    return socket?.push(copy) ?? true;
  }

  #leave(): void {
    if (this.#buffer !== common) forget();
    this.#buffer = common;
  }
}

/** The option `onread` of a socket that is made with it, by `make`. */
export function withReadBuffers(make: (onread: OnReadOpts) => Socket): Socket {
  const reading = new SocketReading();
  const socket = make(reading.onread);
  reading.belongTo(socket);
  readings.set(socket, reading);
  return socket;
}

/**
 * Has what the socket reads in bulk given to `taker` and not emitted as "data", as long as the socket flows.
 * The returned function ends that. Streams of other makes emit all they have.
 */
export function takeReads(from: object, taker: Taker): () => void {
  const reading = readings.get(from as Socket);
  reading?.handTo(taker);
  return () => reading?.handTo(undefined);
}
