import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.js";
import type { Pipe } from "../browser/pipe.js";
import type { Limits } from "./limits.js";

/**
 * Watches what is unsent to one client. Above the high-water mark the browser's pipe is held until all is sent; a client
 * that keeps the others waiting for too long, or is too far behind, is cut.
 */
export class Flow {
  #release: (() => void) | undefined;

  constructor(
    private readonly socket: Duplex,
    private readonly pipe: Pick<Pipe, "hold" | "resume">,
    private readonly rules: { readonly clock: Clock; readonly limits: Limits; readonly cut: (reason: string) => void },
  ) {}

  /** After each message that was given to the socket. */
  sent(): void {
    const unsent = this.socket.writableLength;
    if (unsent <= this.rules.limits.highWaterBytes) return;
    if (unsent > this.rules.limits.cutBytes) return this.rules.cut("too far behind with reading");
    this.#release ??= this.#hold();
  }

  /** The client is leaving: the others go on. */
  end(): void {
    this.#release?.();
  }

  #hold(): () => void {
    const { clock, limits, cut } = this.rules;
    const release = (): void => {
      cancel();
      this.socket.off("drain", release);
      this.#release = undefined;
      this.pipe.resume();
    };
    const cancel = clock.after(limits.holdMs, () => cut("too slow with reading"));
    this.socket.on("drain", release);
    this.pipe.hold();
    return release;
  }
}
