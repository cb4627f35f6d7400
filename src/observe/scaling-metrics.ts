import { Gauge, Histogram, type Registry } from "prom-client";
import type { Millis } from "../base/clock.js";

/** What a scaler is told, as the store has it. */
export interface ScalingGauge {
  readonly wantedNodes: number;
  readonly freeBytes: number;
  readonly admittedBytes: number;
  readonly lacking: number;
  readonly unplaceable: number;
}

/** The buckets are in seconds: a lease may be one call, or a day's work. */
const holdBuckets = [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400];

/** When to scale nodes, and by how much; arrivals are the count of remuda_acquire_wait_seconds. */
export class ScalingMetrics {
  readonly #gauges: readonly (readonly [keyof ScalingGauge, Gauge])[];
  readonly #held: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
    this.#gauges = [
      [
        "wantedNodes",
        gauge(
          "remuda_nodes_wanted",
          "Nodes that would hold all browsers that exist or are lacking, and those that drain on request",
        ),
      ],
      ["freeBytes", gauge("remuda_capacity_free_bytes", "Memory classes that nodes could still admit")],
      ["admittedBytes", gauge("remuda_capacity_bytes", "Memory classes that nodes admit in all")],
      ["lacking", gauge("remuda_browsers_lacking", "Browsers that pools lack to their sizes")],
      ["unplaceable", gauge("remuda_browsers_unplaceable", "Of those, browsers for which no node has room")],
    ];
    this.#held = new Histogram({
      name: "remuda_lease_held_seconds",
      help: "How long leases were held, of those that ended in this process",
      labelNames: ["pool"],
      buckets: holdBuckets,
      registers,
    });
  }

  held(pool: string, heldMs: Millis): void {
    this.#held.observe({ pool }, heldMs / 1000);
  }

  /** Undefined where the store cannot be read: a gauge is absent then rather than old. */
  show(scaling: ScalingGauge | undefined): void {
    for (const [field, gauge] of this.#gauges)
      if (scaling) gauge.set(scaling[field]);
      else gauge.remove();
  }

  /** Those that have a label for the pool, and end with it. */
  get perPool(): readonly Histogram[] {
    return [this.#held];
  }
}
