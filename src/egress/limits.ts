import { Transform } from "node:stream";
import type { Clock, Millis } from "../base/clock.js";

/** The head of a request has to arrive whole within this. */
export const headersMs: Millis = 15_000;
/** How long a browser's connection may wait for its next request. */
export const keepAliveMs: Millis = 60_000;
/** How long a connection to an origin is kept for the next request. */
export const idleOriginMs: Millis = 4000;
export const idleOrigins = 32;
/** Denials of one browser in a second that are answered at once, and how long further ones wait. */
export const promptDenials = 200;
export const denialDelayMs: Millis = 1000;
/** Connections a browser may hold open beyond those with a request; more are closed unanswered. */
export const spareConnections = 64;

/**
 * Bytes that may pass: refilled continuously, holding at most a tenth of a second's worth; may be overdrawn
 * by one piece of each connection. `carried` tells how many bytes have passed by now, by any way.
 */
export class Bucket {
  #bytes: number;
  #at: Millis;
  #taken = 0;

  constructor(
    private readonly bytesPerSecond: number,
    private readonly clock: Clock,
    private readonly carried: () => number,
  ) {
    this.#at = clock.monotonic();
    this.#bytes = this.#most;
  }

  get #most(): number {
    return this.bytesPerSecond / 10;
  }

  /** Takes the bytes; the result is how long to wait before they may pass. */
  take(bytes: number): Millis {
    const now = this.clock.monotonic();
    this.#bytes = Math.min(this.#most, this.#bytes + ((now - this.#at) * this.bytesPerSecond) / 1000) - bytes;
    this.#at = now;
    this.#taken += bytes;
    return this.#bytes >= 0 ? 0 : (-this.#bytes / this.bytesPerSecond) * 1000;
  }

  /**
   * Takes what has passed and was not taken piece by piece: heads, what frames a message, handshakes, and
   * what came for somebody who has given up. The result is how long to wait before anything more may begin.
   */
  catchUp(): Millis {
    return this.take(Math.max(0, this.carried() - this.#taken));
  }
}

/** Passes its input on at the pace of a bucket. */
export function throttle(bucket: Bucket, clock: Clock): Transform {
  let cancel = (): void => {};
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const waitMs = bucket.take(chunk.length);
      if (waitMs === 0) done(null, chunk);
      else cancel = clock.after(waitMs, () => done(null, chunk));
    },
    destroy(error, done) {
      cancel();
      done(error);
    },
  });
}
