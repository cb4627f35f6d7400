import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";

interface LaunchHealthPorts {
  readonly clock: Clock;
  readonly log: Log;
  /** The pause after a failure: doubled with each further one, up to a maximum. */
  readonly backoff: { readonly initialMs: Millis; readonly maxMs: Millis };
  /** Asks to be given no launch for so long, and then a single one. */
  rest(ms: Millis): Promise<void>;
  /** Says that it launches again. */
  wake(): Promise<void>;
  /** Called when the next beat would tell something else of this node. */
  changed(): void;
}

/**
 * Whether launches of this node come to anything; whoever places browsers spares one whose launches do not.
 */
export class LaunchHealth {
  #failures = 0;
  #error = "";
  #failedAt: Millis = -Infinity;

  constructor(private readonly ports: LaunchHealthPorts) {}

  get failing(): { readonly failures: number; readonly error: string } | undefined {
    return this.#failures === 0 ? undefined : { failures: this.#failures, error: this.#error };
  }

  /** Launches that were begun together fail together: that is one failure. */
  failed(begunAt: Millis, error: string): void {
    const { clock, log, backoff } = this.ports;
    if (begunAt < this.#failedAt) return;
    this.#failedAt = clock.monotonic();
    this.#failures += 1;
    this.#error = error.slice(0, 500);
    const restsMs = Math.min(backoff.maxMs, backoff.initialMs * 2 ** Math.min(this.#failures - 1, 20));
    log.warn({ failures: this.#failures, restsMs, error: this.#error }, "node fails launches");
    this.#report(this.ports.rest(restsMs));
  }

  launched(): void {
    if (this.#failures === 0) return;
    this.ports.log.info({ failures: this.#failures }, "node launches again");
    this.#failures = 0;
    this.#failedAt = -Infinity;
    this.#report(this.ports.wake());
  }

  #report(reporting: Promise<void>): void {
    this.ports.changed();
    reporting.catch((error: unknown) =>
      this.ports.log.warn({ error: textOf(error) }, "health of the node could not be reported"),
    );
  }
}
