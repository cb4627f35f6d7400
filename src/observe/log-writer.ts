import { createWriteStream, fstatSync } from "node:fs";
import type { Writable } from "node:stream";
import { isatty } from "node:tty";
import { type Clock, type Millis, pause } from "../base/clock.js";

/**
 * Why a line was not written: its like came too often, nobody reads fast enough, or nobody reads any more.
 */
type DropReason = "rate_limit" | "buffer_full" | "output_closed";

const dropped: Record<DropReason, number> = { rate_limit: 0, buffer_full: 0, output_closed: 0 };

/** Lines this process has not written since its start. */
export const droppedLines: Readonly<Record<DropReason, number>> = dropped;

export const countDropped = (reason: DropReason, lines = 1): void => void (dropped[reason] += lines);

/** What is said to a stream that nobody reads. */
interface WaitingLine {
  readonly line: string;
  readonly bytes: number;
}

/** Hands lines to a stream in pieces, never waits for it, and holds at most so many bytes for it. */
export class LogWriter {
  #waiting: WaitingLine[] = [];
  #bytes = 0;
  #isWriting = false;
  #isBroken = false;
  #droppedSince = 0;

  /** `onRoom`: lines were dropped, and there is room again to say how many. */
  constructor(
    private readonly to: Writable,
    private readonly parts: { readonly maxBytes: number; onRoom(lines: number): void },
  ) {
    // The reader of our lines has gone (`| head`): that is no reason to end.
    to.on("error", () => this.#break());
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#isBroken) return countDropped("output_closed");
    if (this.#bytes + bytes > this.parts.maxBytes) {
      this.#droppedSince += 1;
      return countDropped("buffer_full");
    }
    this.#waiting.push({ line, bytes });
    this.#bytes += bytes;
    this.#next();
  }

  /** Resolves when all is written, or at the limit. */
  async close(clock: Clock, limitMs: Millis): Promise<void> {
    const until = clock.monotonic() + limitMs;
    while (this.#bytes > 0 && !this.#isBroken && clock.monotonic() < until) await pause(clock, closePollMs);
  }

  #next(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    // What one turn of the event loop says leaves in one write.
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    const piece = this.#waiting;
    this.#waiting = [];
    this.to.write(piece.map(({ line }) => line).join(""), (error) => {
      this.#isWriting = false;
      if (error) return this.#break();
      this.#bytes -= piece.reduce((sum, { bytes }) => sum + bytes, 0);
      if (this.#waiting.length > 0) return this.#next();
      const lines = this.#droppedSince;
      this.#droppedSince = 0;
      if (lines > 0) this.parts.onRoom(lines);
    });
  }

  #break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    countDropped("output_closed", this.#waiting.length);
    this.#waiting = [];
  }
}

const closePollMs = 5;

/**
 * A stream that does not block on a descriptor. Node.js 20 writes to pipes, sockets and terminals without
 * blocking when its own stream does it, and to files from its thread pool. A pipe must not be written to from
 * the thread pool: where nobody reads, such a write keeps the process from ending.
 */
export function openStream(descriptor: 1 | 2): Writable {
  if (fstatSync(descriptor).isFile()) return createWriteStream("", { fd: descriptor, autoClose: false });
  const stream = descriptor === 1 ? process.stdout : process.stderr;
  // Node.js has writes to a terminal block (Node.js 20.20), which one that was stopped (Ctrl-S) would do for
  // ever.
  if (isatty(descriptor)) (stream as Blocking)._handle?.setBlocking?.(false);
  return stream;
}

interface Blocking {
  readonly _handle?: { setBlocking?(isBlocking: boolean): void };
}
