import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { bytesOf, type Frame } from "../browser/cdp/frame.js";

/** What stands before a whole text that is longer than 64 KiB (RFC 6455, 5.2). */
function textHead(bytes: number): Buffer {
  const head = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

/** Writes what the browser says to a client's WebSocket, as texts. */
export class FrameWriter {
  #isCorked = false;

  constructor(private readonly socket: Duplex) {}

  write(webSocket: WebSocket, frame: Frame | string): void {
    this.#cork();
    if (typeof frame === "string" || Buffer.isBuffer(frame))
      webSocket.send(frame, { binary: false, compress: false });
    else this.#writeParts(frame);
  }

  /**
   * Sends the parts as one frame, because there are clients that read no fragments. It goes past ws, which
   * would have to join the parts first; ws holds nothing back that should go before.
   */
  #writeParts(parts: readonly Buffer[]): void {
    this.socket.write(textHead(bytesOf(parts)));
    for (const part of parts) this.socket.write(part);
  }

  /** Frames that came in one read of the pipe go out in one write. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.socket.uncork();
    });
  }
}
