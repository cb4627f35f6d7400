import { Counter, Gauge, type Registry } from "prom-client";
import type { Millis } from "../base/clock.js";

/** An active export destination, as the store has it. */
export interface ExportGauge {
  readonly destination: string;
  /** How old the newest entry may be that was delivered. */
  readonly lagMs: Millis;
  readonly failures: number;
}

/** What is shown of the audit log's delivery: this control's, and where each destination stands. */
export class ExportMetrics {
  readonly #entries: Counter;
  readonly #failed: Counter;
  readonly #gaps: Counter;
  readonly #lag: Gauge;
  readonly #failures: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#entries = new Counter({
      name: "remuda_audit_export_entries_total",
      help: "Entries of the audit log put into buckets of export destinations",
      registers,
    });
    this.#failed = new Counter({
      name: "remuda_audit_export_failures_total",
      help: "Deliveries to export destinations that have failed",
      labelNames: ["stage"],
      registers,
    });
    this.#gaps = new Counter({
      name: "remuda_audit_export_gaps_total",
      help: "Times that entries were forgotten before they were delivered to an export destination",
      registers,
    });
    this.#lag = new Gauge({
      name: "remuda_audit_export_lag_seconds",
      help: "How far each active export destination is behind; a delivery on time holds back for 10 to 15 minutes",
      labelNames: ["destination"],
      registers,
    });
    this.#failures = new Gauge({
      name: "remuda_audit_export_consecutive_failures",
      help: "Deliveries to each active export destination that have failed since the last that did not",
      labelNames: ["destination"],
      registers,
    });
  }

  delivered(entries: number): void {
    this.#entries.inc(entries);
  }
  failed(stage: string): void {
    this.#failed.inc({ stage });
  }
  gap(): void {
    this.#gaps.inc();
  }

  show(destinations: readonly ExportGauge[]): void {
    for (const gauge of [this.#lag, this.#failures]) gauge.reset();
    for (const { destination, lagMs, failures } of destinations) {
      this.#lag.set({ destination }, lagMs / 1000);
      this.#failures.set({ destination }, failures);
    }
  }
}
