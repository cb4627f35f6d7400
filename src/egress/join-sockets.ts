import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { Clock, Millis } from "../base/clock.js";
import type { FairTurn } from "../base/fair-turns.js";
import { destroySocket } from "./dial.js";
import { type Bucket, throttle } from "./limits.js";
import { takeReads } from "../base/net/read-buffers.js";
import type { OpenConnection } from "./connections.js";

/** What limits the bytes of a browser. */
export interface Pace {
  readonly clock: Clock;
  readonly bucket?: Bucket | undefined;
  /** The share of the event loop that all browsers of the daemon have together. */
  readonly turn: FairTurn;
}

/**
 * Waits until what has passed already is within the limit; undefined where more may begin at once. Whoever
 * waits gives up when the listener is called that `onOver` is handed.
 */
export function awaitPace(
  { clock, bucket }: Pace,
  onOver: (giveUp: () => void) => unknown,
): Promise<void> | undefined {
  const waitMs = bucket?.catchUp() ?? 0;
  if (waitMs === 0) return undefined;
  return new Promise((resolve) => {
    const cancel = clock.after(waitMs, resolve);
    onOver(() => {
      cancel();
      resolve();
    });
  });
}

/** Lets bytes flow from one to the other, at the pace of the browser, and its end too. */
export function pipeBytes(from: Readable, to: Writable, { clock, bucket, turn }: Pace): void {
  if (!bucket) return carry(from, to, turn);
  const slow = throttle(bucket, clock);
  to.once("close", () => slow.destroy());
  carry(from.pipe(slow), to, turn);
}

/** What it takes to read 64 KiB, which is as much as comes at once, and to write it (Node.js 20). */
const chunkMs: Millis = 0.06;
const costOf = (bytes: number): Millis => (chunkMs * bytes) / 65_536;

/**
 * Does what `pipe` does, but in turns: Node.js reads up to 32 times from one socket before it looks at any
 * other, so that a few downloads would keep everybody waiting for 10 ms and more.
 */
function carry(from: Readable, to: Writable, turn: FairTurn): void {
  let isWaiting = false;
  let isOver = false;
  const goOn = (): void => {
    if (!isWaiting && !isOver && !to.writableNeedDrain) from.resume();
  };
  const wait = (costMs: Millis): void => {
    isWaiting = true;
    turn.wait(() => {
      isWaiting = false;
      goOn();
    }, costMs);
  };
  let paidMs: Millis = 0;
  const take = (chunk: Buffer, written?: (error?: Error | null) => void): void => {
    const costMs = costOf(chunk.length);
    turn.spend(Math.max(0, costMs - paidMs));
    paidMs = 0;
    if (!to.write(chunk, written) || turn.isOver) from.pause();
    if (!turn.isOver || isWaiting) return;
    paidMs = costMs;
    wait(costMs);
  };
  const takeCopy = (chunk: Buffer): void => take(chunk);
  const takeNoMore = takeReads(from, take);
  const stop = (): void => {
    isOver = true;
    takeNoMore();
    from.off("data", takeCopy).pause();
    to.off("drain", goOn);
  };
  from.on("data", takeCopy).once("end", () => to.end());
  to.on("drain", goOn).once("close", stop).once("error", stop);
}

/**
 * Joins a browser's socket to the connection that was opened for it, each direction until its end, and
 * ends that connection when both are closed.
 */
export function joinSockets(inner: Socket, connection: OpenConnection, pace: Pace): void {
  const outer = connection.connection.socket;
  const onClose = (other: Socket) => (): void => {
    // What was received is still handed on.
    other.destroySoon();
    if (other.destroyed) connection.end();
  };
  connection.onCut(() => destroySocket(inner));
  // A broken connection is to look broken on the other side too, not ended.
  outer.on("error", () => destroySocket(inner));
  inner.on("error", () => destroySocket(outer));
  outer.once("close", onClose(inner));
  inner.once("close", onClose(outer));
  pipeBytes(inner, outer, pace);
  pipeBytes(outer, inner, pace);
}
