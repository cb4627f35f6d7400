import type { Socket } from "node:net";
import type { Clock } from "../base/clock.js";
import { cut } from "./dial.js";
import { type Bucket, throttle } from "./limits.js";
import type { Passage } from "./passages.js";

/** What limits the bytes of a browser; absent: nothing does. */
export interface Pace {
  readonly clock: Clock;
  readonly bucket?: Bucket | undefined;
}

/** Lets bytes flow from one to the other, at the pace of the browser, and its end too. */
export function flow(from: NodeJS.ReadableStream, to: NodeJS.WritableStream, { clock, bucket }: Pace): void {
  if (!bucket) return void from.pipe(to);
  const slow = throttle(bucket, clock);
  to.once("close", () => slow.destroy());
  from.pipe(slow).pipe(to);
}

/** Joins a browser's socket to what its passage reached, each direction until its end, and ends the passage when both are closed. */
export function splice(inner: Socket, passage: Passage, pace: Pace): void {
  const outer = passage.connection.socket;
  const onClose = (other: Socket) => (): void => {
    // What was received is still handed on.
    other.destroySoon();
    if (other.destroyed) passage.end();
  };
  passage.onCut(() => cut(inner));
  // A broken connection is to look broken on the other side too, not ended.
  outer.on("error", () => cut(inner));
  inner.on("error", () => cut(outer));
  outer.once("close", onClose(inner));
  inner.once("close", onClose(outer));
  flow(inner, outer, pace);
  flow(outer, inner, pace);
}
