import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.js";
import type { Pipe } from "../browser/cdp/pipe.js";
import type { Account } from "../base/budget.js";
import type { GatewayLimits } from "./limits.js";

/** What stands still while a client does not read: its browser, and itself. */
interface PausedClient {
  readonly pipe: Pick<Pipe, "hold" | "resume">;
  wait(): void;
  proceed(): void;
}

interface FlowRules {
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  readonly unread: Account;
  readonly cut: (reason: string) => void;
}

/** This is more than a socket takes without an event when it is drained. */
const countedBytes = 64 * 1024;

/**
 * Watches what is unsent to one client. Above the high-water mark the browser's pipe is held until all is
 * sent, and nothing more is read of the client, which would be answered; one that keeps the others waiting
 * for too long, or is too far behind, is cut.
 */
export class Backpressure {
  #release: (() => void) | undefined;
  #isCounted = false;
  #isOver = false;

  constructor(
    private readonly socket: Duplex,
    private readonly held: PausedClient,
    private readonly rules: FlowRules,
  ) {}

  /** Has to be called after each message that was given to the socket. */
  sent(): void {
    const unsent = this.socket.writableLength;
    if (unsent <= countedBytes) return;
    this.#count(unsent);
    if (this.#isOver || unsent <= this.rules.limits.highWaterBytes) return;
    if (unsent > this.rules.limits.cutBytes) return this.rules.cut("too far behind with reading");
    this.#release ??= this.#hold();
  }

  /** The client is leaving: the others go on. */
  end(): void {
    this.#isOver = true;
    this.#release?.();
  }

  #count(unsent: number): void {
    this.rules.unread.set(unsent);
    if (this.#isCounted) return;
    this.#isCounted = true;
    this.socket.once("drain", () => {
      this.#isCounted = false;
      this.rules.unread.set(0);
    });
  }

  #hold(): () => void {
    const { clock, limits, cut } = this.rules;
    const release = (): void => {
      cancel();
      this.socket.off("drain", release);
      this.#release = undefined;
      this.held.pipe.resume();
      this.held.proceed();
    };
    const cancel = clock.after(limits.holdMs, () => cut("too slow with reading"));
    this.socket.on("drain", release);
    this.held.pipe.hold();
    this.held.wait();
    return release;
  }
}
