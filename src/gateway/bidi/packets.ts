import type { Writable } from "node:stream";
import { bytesOf, type Frame } from "../../browser/cdp/frame.js";

/** How long the packet is, in front of it. */
const headBytes = 4;

/** An empty message: the client was told all, and asked to be disconnected. */
export const goodbye = "";

/** Parts of what came in one turn of the event loop go out in one write. */
export function writePacket(to: Writable, message: Frame | string): void {
  const frame = typeof message === "string" ? Buffer.from(message) : message;
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(bytesOf(frame));
  to.cork();
  to.write(head);
  for (const part of Buffer.isBuffer(frame) ? [frame] : frame) to.write(part);
  process.nextTick(() => to.uncork());
}

interface PacketLimit {
  readonly mostBytes: number;
  /** A longer packet is announced; nothing more is taken. */
  exceeded(): void;
}

/** Finds the packets in what a stream gives. Long ones stay in the parts in which they came. */
export class PacketReader {
  readonly #head = Buffer.alloc(headBytes);
  #headLength = 0;
  #left = 0;
  #parts: Buffer[] = [];

  #isOver = false;

  constructor(
    private readonly take: (frame: Frame) => void,
    private readonly limit?: PacketLimit,
  ) {}

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#isOver;)
      at = this.#left > 0 ? this.#body(chunk, at) : this.#headByte(chunk, at);
  }

  #headByte(chunk: Buffer, at: number): number {
    this.#head[this.#headLength] = chunk[at] ?? 0;
    this.#headLength += 1;
    if (this.#headLength < headBytes) return at + 1;
    this.#headLength = 0;
    this.#left = this.#head.readUInt32BE();
    if (this.#left === 0) this.take(Buffer.alloc(0));
    this.#isOver = this.#left > (this.limit?.mostBytes ?? Infinity);
    if (this.#isOver) this.limit?.exceeded();
    return at + 1;
  }

  #body(chunk: Buffer, at: number): number {
    const part = chunk.subarray(at, at + this.#left);
    this.#left -= part.length;
    this.#parts.push(part);
    if (this.#left === 0) {
      const [first = part, ...more] = this.#parts;
      this.#parts = [];
      this.take(more.length === 0 ? first : [first, ...more]);
    }
    return at + part.length;
  }
}
