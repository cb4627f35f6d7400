import { Gauge, type Registry } from "prom-client";
import type { Millis } from "../base/clock.js";
import type { Log } from "../base/log.js";

/** The time in which one Redis had all that was written; `why` it began is a word. */
interface Epoch {
  readonly number: number;
  /** By Redis's clock. */
  readonly startedAt: Millis;
  readonly why: string;
}

/** When Redis may last have lost something; for alerts. */
export class EpochMetrics {
  readonly #startedAt: Gauge;

  constructor(registry: Registry) {
    this.#startedAt = new Gauge({
      name: "remuda_store_epoch_start_seconds",
      help: "When the present epoch of Redis began; another value: it was started anew or failed over, or lost all",
      registers: [registry],
    });
  }

  show({ startedAt }: Epoch): void {
    this.#startedAt.set(startedAt / 1000);
  }
}

/** Says when Redis was started anew, has failed over, or has forgotten everything. */
export class EpochWatch {
  #last: Epoch | undefined;

  constructor(
    private readonly log: Log,
    private readonly metrics: Pick<EpochMetrics, "show">,
  ) {}

  see(epoch: Epoch): void {
    const last = this.#last;
    if (last?.number === epoch.number && last.startedAt === epoch.startedAt) return;
    this.#last = epoch;
    this.metrics.show(epoch);
    if (!last) return this.log.info({ ...epoch }, "epoch of Redis seen");
    // The first epoch is noted in a Redis that knows of none: all that was there has gone with the others.
    const why = epoch.why === "first" ? "Redis is empty, or another one" : epoch.why;
    this.log.warn(
      { ...epoch, why },
      "another epoch of Redis has begun: it may have lost what was written last",
    );
  }
}
