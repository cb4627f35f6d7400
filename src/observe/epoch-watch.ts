import { Counter, Gauge, type Registry } from "prom-client";
import type { Millis } from "../base/clock.js";
import type { Log } from "../base/log.js";

/** The time in which one Redis had all that was written; `why` it began is a word. */
interface Epoch {
  readonly number: number;
  /** When it began, by Redis's clock. */
  readonly startedAt: Millis;
  readonly why: string;
}

/** When Redis may last have lost something, and what this node had to restore; for alerts. */
export class EpochMetrics {
  readonly #startedAt: Gauge;
  readonly #emptied: Counter;
  readonly #restored: Counter<"kind">;

  constructor(registry: Registry) {
    this.#startedAt = new Gauge({
      name: "remuda_store_epoch_start_seconds",
      help: "When the present epoch of Redis began; another value: it was started anew or failed over, or lost all",
      registers: [registry],
    });
    this.#emptied = new Counter({
      name: "remuda_store_emptied_total",
      help: "How often this node has found Redis empty that had held its records",
      registers: [registry],
    });
    this.#restored = new Counter({
      name: "remuda_store_restored_total",
      help: "What this node has restored into a Redis that was found empty",
      labelNames: ["kind"],
      registers: [registry],
    });
  }

  show({ startedAt }: Epoch): void {
    this.#startedAt.set(startedAt / 1000);
  }

  recovered({ pools, browsers, leases }: Record<"pools" | "browsers" | "leases", number>): void {
    this.#emptied.inc();
    this.#restored.inc({ kind: "pool" }, pools);
    this.#restored.inc({ kind: "browser" }, browsers);
    this.#restored.inc({ kind: "lease" }, leases);
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
