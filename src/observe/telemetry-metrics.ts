import { Counter, type Registry } from "prom-client";

/** What this process has recorded of browsers for their holders. */
export class TelemetryMetrics {
  readonly #events: Counter;
  readonly #lost: Counter;
  readonly #exported: Counter;
  readonly #exportLost: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#events = new Counter({
      name: "remuda_telemetry_events_total",
      help: "Events of browsers put into the streams of their sessions",
      registers,
    });
    this.#lost = new Counter({
      name: "remuda_telemetry_events_lost_total",
      help: "Events of browsers that are in no stream: too many came at once, Redis was away for too long, or has lost them",
      labelNames: ["reason"],
      registers,
    });
    this.#exported = new Counter({
      name: "remuda_telemetry_exported_total",
      help: "Events and spans that collectors have taken",
      registers,
    });
    this.#exportLost = new Counter({
      name: "remuda_telemetry_export_lost_total",
      help: "Events and spans that no collector has taken: too many waited, a delivery has failed, or there is no such destination",
      labelNames: ["reason"],
      registers,
    });
  }

  recorded(count: number): void {
    this.#events.inc(count);
  }

  lost(reason: string, count: number): void {
    this.#lost.inc({ reason }, count);
  }

  exported(count: number): void {
    this.#exported.inc(count);
  }

  exportLost(reason: string, count: number): void {
    this.#exportLost.inc({ reason }, count);
  }
}
