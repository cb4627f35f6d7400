import type { Duplex } from "node:stream";
import type { Clock, Millis } from "../base/clock.js";
import type { FairTurn } from "../base/fair-turns.js";
import type { IncomingFrames } from "./incoming-frames.js";

const longBytes = 16 * 1024;
/** How much is read at once of a client that had to wait: least where its messages are short. */
const pieceBytes = { least: 2 * 1024, most: 64 * 1024 } as const;
/** A piece takes about so long, as 64 KiB of one long message do, so that more than one fit in a turn. */
const pieceMs: Millis = 0.15;
/** A client whose chunks take longer than this is read in pieces. */
const slowMs: Millis = 4 * pieceMs;

interface ReadPaceParts {
  readonly socket: Duplex;
  readonly turn: FairTurn;
  /** What was received of the client so far. */
  readonly incoming: Pick<IncomingFrames, "messages">;
  readonly clock: Pick<Clock, "monotonic">;
  /** Every `wait` is followed by one `proceed`. */
  wait(): void;
  proceed(): void;
}

/**
 * Lets a client send no faster than its browser's turn allows. Node.js reads 64 KiB at once, and up to two
 * megabytes before it looks at any other socket; 64 KiB of the shortest commands take 3 ms. So a client that
 * has used up its turn with such is read in pieces from then on: a listener of "readable" keeps the socket
 * from flowing, and each `read` emits "data" as before. Of much that was read ws gives one message in a round
 * of the event loop, so nothing more is read before it has given all: it would gather megabytes of short
 * messages.
 */
export class ReadPace {
  #chunk: { readonly bytes: number; readonly since: Millis; readonly usedMs: Millis } | undefined;
  /** What the turn has counted already of the next chunk. */
  #paidMs: Millis = 0;
  #isInPieces = false;
  #isHeld = false;
  #given = 0;
  #waitsForMessages = false;
  #pieceBytes: number = pieceBytes.most;

  constructor(private readonly parts: ReadPaceParts) {}

  /** Has to be called before a chunk is read. */
  begin({ length }: Buffer): void {
    if (length < longBytes && !this.#isInPieces) return;
    const { turn, clock } = this.parts;
    this.#chunk = { bytes: length, since: clock.monotonic(), usedMs: turn.usedMs };
  }

  /** Has to be called when it was read; after it the client may have to wait. */
  end(): void {
    if (!this.#chunk) return;
    const { turn, clock } = this.parts;
    const { bytes, since, usedMs } = this.#chunk;
    this.#chunk = undefined;
    const tookMs = clock.monotonic() - since;
    // The messages in it have counted themselves.
    turn.spend(Math.max(0, tookMs - (turn.usedMs - usedMs) - this.#paidMs), bytes);
    this.#paidMs = 0;
    this.#fit(tookMs, bytes);
    this.#waitForMessages();
    if (!turn.isOver) return;
    if (tookMs > slowMs) this.#readInPieces();
    this.#waitForTurn();
  }

  /** Has to be called after each message that ws has given. */
  given(): void {
    this.#given += 1;
    if (!this.#waitsForMessages || this.#given < this.parts.incoming.messages) return;
    this.#waitsForMessages = false;
    this.parts.proceed();
  }

  /** Nothing is read until `resume`. */
  pause(): void {
    this.#isHeld = true;
  }

  resume(): void {
    this.#isHeld = false;
    this.#readOn();
  }

  #waitForMessages(): void {
    if (this.#waitsForMessages || this.#given >= this.parts.incoming.messages) return;
    this.#waitsForMessages = true;
    this.parts.wait();
  }

  #waitForTurn(): void {
    this.parts.wait();
    this.parts.turn.wait(() => {
      this.#paidMs = pieceMs;
      this.parts.proceed();
    }, pieceMs);
  }

  #fit(tookMs: Millis, bytes: number): void {
    if (tookMs > 2 * pieceMs)
      this.#pieceBytes = Math.max(pieceBytes.least, Math.min(bytes, this.#pieceBytes) / 2);
    else if (tookMs < pieceMs) this.#pieceBytes = Math.min(pieceBytes.most, this.#pieceBytes * 2);
  }

  #readInPieces(): void {
    if (this.#isInPieces) return;
    this.#isInPieces = true;
    this.parts.socket.on("readable", () => this.#readOn());
  }

  #readOn(): void {
    const { socket } = this.parts;
    while (this.#isInPieces && !this.#isHeld) {
      const left = socket.readableLength;
      // An empty read at the end of the stream makes Node.js emit "end".
      const piece: unknown = left === 0 ? socket.read() : socket.read(Math.min(left, this.#pieceBytes));
      if (piece === null) return;
    }
  }
}
